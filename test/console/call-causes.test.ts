import { expect, it } from "vitest";
import { callCausesOf } from "../../src/console/app/pages/deployments/call-causes.ts";

it("has a cause for each code and endpoint, the most frequent first, with what explains it", () => {
  const endpointCalls = [
    { endpoint: "", calls: 3, failures: [{ code: "not_found", calls: 3 }] },
    {
      endpoint: "read",
      calls: 40,
      failures: [
        { code: "internal", calls: 9 },
        { code: "other", calls: 1 },
      ],
    },
    { endpoint: "write", calls: 5 },
    { endpoint: "/items/{number}", calls: 9, failures: [{ code: "invalid_argument", calls: 4 }] },
  ];
  expect(
    callCausesOf({ endpointCalls }).map((one) => [
      one.endpoint,
      one.text,
      one.explained,
      one.count,
    ]),
  ).toEqual([
    ["read", "the function failed", "log", 9],
    ["/items/{number}", "invalid arguments", "log", 4],
    ["", "not found", "arguments", 3],
    ["read", "another error", "log", 1],
  ]);
  expect(callCausesOf({})).toEqual([]);
});
