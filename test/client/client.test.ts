import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { createTesseraClient, errorFacts } from "../../src/client/index.ts";
import { factsOf } from "../../src/client/schema.ts";
import { problem } from "../../src/errors.ts";

it("refuses a token that no header can carry, without showing it", () => {
  const token = "tsrp_secret\r\nx-other: 1";
  const connect = () => createTesseraClient({ url: "http://127.0.0.1:1", token });
  expect(connect).toThrow(/characters that cannot be sent/);
  expect(connect).not.toThrow(/secret/);
});

describe("what an error says to programs", () => {
  it("is its reason, the fields that were refused, how long to wait, and facts", () => {
    const violations = [{ field: "name", description: "is empty" }];
    const metadata = { task_id: "1" };
    const err = problem("REQUEST_INVALID", "no", { violations, retryAfterMs: 2_000, metadata });
    expect(errorFacts(err)).toEqual({
      reason: "REQUEST_INVALID",
      violations,
      retryAfterMs: 2_000,
      metadata,
    });
  });

  it("is nothing where the server said nothing", () => {
    const nothing = { reason: undefined, violations: [], retryAfterMs: undefined, metadata: {} };
    expect(errorFacts(new ConnectError("HTTP 502", Code.Unavailable))).toEqual(nothing);
    expect(errorFacts(new Error("x"))).toEqual(nothing);
  });
});

it("calls an endpoint at the path that its description has", () => {
  const described = { name: "predict", is_task: false, input: {}, output: {} };
  expect(factsOf({ ...described, route: "/v1/predict" })).toMatchObject({ path: "/v1/predict" });
  expect(factsOf({ ...described, route: "/predict" })).not.toHaveProperty("path");
});
