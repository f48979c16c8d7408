import { describe, expect, it } from "vitest";
import { createSchemaCheck } from "../../../src/deployments/input/schema-check.ts";
import { endpoint } from "../manifests.ts";

const check = createSchemaCheck(
  endpoint({
    name: "sum",
    input: {
      type: "object",
      properties: { numbers: { type: "array", items: { type: "number" } } },
    },
  }),
);

describe("the check of arguments", () => {
  it("finds nothing in what is right", () => {
    expect(check({ numbers: [1, 2] })).toEqual({ count: 0, violations: [] });
  });

  it("counts all that is wrong with small arguments, and describes the first 20", () => {
    const { count, violations } = check({ numbers: Array(1_000).fill("1") });
    expect(count).toBe(1_000);
    expect(violations).toHaveLength(20);
    expect(violations[19]).toEqual({ field: "numbers.19", description: "must be number" });
  });

  it("stops at the first fault of large ones, at once", () => {
    const numbers: unknown[] = Array(2_000_000).fill(true);
    const text = JSON.stringify({ numbers });
    const startMs = performance.now();
    const { count, violations } = check({ numbers }, text);
    // It takes well below 1 ms; collecting everything takes seconds.
    expect(performance.now() - startMs).toBeLessThan(50);
    expect({ count, fields: violations.map(({ field }) => field) }).toEqual({
      count: 1,
      fields: ["numbers.0"],
    });
  });

  it("does the same for what did not come as text", () => {
    expect(check({ numbers: Array(20_000).fill("123") }).count).toBe(1);
  });
});
