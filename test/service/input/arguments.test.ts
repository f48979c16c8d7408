import { expect, it } from "vitest";
import { ArgumentsReader } from "../../../src/service/input/arguments.ts";
import { localFiles } from "../../files/local.ts";
import { endpoint } from "../manifests.ts";

it("a body of 4 MB in which everything is wrong is refused without holding up the node", () => {
  const numbers = { type: "array", items: { type: "number" } };
  const reader = new ArgumentsReader(
    endpoint({ name: "sum", input: { type: "object", properties: { numbers } } }),
  );
  reader.compile();
  const data = Buffer.from(`{"numbers":[${`"${"x".repeat(38)}",`.repeat(99_000)}""]}`);
  const startMs = performance.now();
  const read = () =>
    reader.read(
      { case: "body", value: { contentType: "application/json", data } },
      localFiles().api,
    );
  expect(read).toThrow(
    expect.objectContaining({
      reason: "ARGUMENTS_INVALID",
      violations: [{ field: "numbers.0", description: "must be number" }],
    }),
  );
  // Nearly all of it is the parser's; describing every fault took seconds.
  expect(performance.now() - startMs).toBeLessThan(1_000);
});
