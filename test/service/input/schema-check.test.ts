import { createContext, Script } from "node:vm";
import { describe, expect, it, vi } from "vitest";
import { createSchemaCheck, type SchemaCheck } from "../../../src/service/input/schema-check.ts";
import { threadTimer } from "../../thread-time.ts";
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
    const tookMs = threadTimer();
    const { count, violations } = check({ numbers }, text);
    // It takes well below 1 ms; collecting everything takes seconds.
    expect(tookMs()).toBeLessThan(50);
    expect({ count, fields: violations.map(({ field }) => field) }).toEqual({
      count: 1,
      fields: ["numbers.0"],
    });
  });

  it("does the same for what did not come as text", () => {
    expect(check({ numbers: Array(20_000).fill("123") }).count).toBe(1);
  });

  it("shows a pattern that can be read, and no long one", () => {
    const long = `^(?!${"a|".repeat(100)}z)`;
    const strange = createSchemaCheck(
      endpoint({
        name: "go",
        input: {
          type: "object",
          properties: {
            year: { type: "string", pattern: "^[0-9]{4}$" },
            word: { type: "string", pattern: long },
            names: { type: "object", propertyNames: { pattern: long } },
          },
        },
      }),
    );
    expect(strange({ year: "x" }).violations[0]?.description).toBe(
      'must match pattern "^[0-9]{4}$"',
    );
    expect(strange({ word: "a" }).violations[0]).toEqual({
      field: "word",
      description: "must have the form that the schema of this endpoint says",
    });
    expect(strange({ names: { abc: 1 } }).violations[0]).toEqual({
      field: "names.abc",
      description: "is no name that this endpoint takes here",
    });
  });

  it("gives up a pattern that would hold up the node, once and for all of its calls", () => {
    const slow = createSchemaCheck(
      endpoint({
        name: "weak",
        input: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } },
      }),
    );
    expect(slow({ text: "b" }).count).toBe(1);
    const { user: beforeUs } = process.threadCpuUsage();
    for (let calls = 0; calls < 10; calls += 1) {
      // It would take hours; what is not checked here is checked by the worker.
      expect(slow({ text: `${"a".repeat(50)}!` }).count).toBe(0);
    }
    expect(process.threadCpuUsage().user - beforeUs).toBeLessThan(400_000);
  });

  it("gives up a schema whose references multiply", () => {
    const levels = Array.from({ length: 40 }, (_, level) => [
      `level${level}`,
      { allOf: Array(2).fill({ $ref: `#/$defs/level${level + 1}` }) },
    ]);
    const multiplied = createSchemaCheck(
      endpoint({
        name: "multiplied",
        input: {
          type: "object",
          properties: { value: { $ref: "#/$defs/level0" } },
          $defs: { ...Object.fromEntries(levels), level40: { type: "integer" } },
        },
      }),
    );
    expect(multiplied({ value: 1 }).count).toBe(0);
  });
});

it("goes on after the first schema's compilation was interrupted", async () => {
  vi.doMock(import("../../../src/service/input/time-limit.ts"), () => ({
    withinTime: (_limitMs, work) => {
      try {
        new Script("work()").runInContext(createContext({ work }), { timeout: 1 });
      } catch (err) {
        expect(err).toMatchObject({ code: "ERR_SCRIPT_EXECUTION_TIMEOUT" });
      }
      return { result: work() };
    },
  }));
  // A query makes a module of its own, which has compiled nothing.
  const own = "../../../src/service/input/schema-check.ts?interrupted";
  const { createSchemaCheck: firstCheck } = await import(own);
  vi.doUnmock("../../../src/service/input/time-limit.ts");
  const input = { type: "object", properties: { number: { type: "number" } } };
  const first: SchemaCheck = firstCheck(endpoint({ name: "sum", input }));
  expect(first({ number: "one" })).toMatchObject({ count: 1 });
});
