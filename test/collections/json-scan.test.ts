import fc from "fast-check";
import { expect, it } from "vitest";
import { faultOfJson, MAX_JSON_DEPTH, MAX_JSON_VALUES } from "../../src/collections/json-scan.ts";

const scan = (text: string) => faultOfJson(Buffer.from(text));

function countOf(value: unknown): number {
  return typeof value === "object" && value !== null
    ? Object.values(value).reduce<number>((sum, each) => sum + countOf(each), 1)
    : 1;
}

it("counts exactly the values that a parser makes", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(4), (text, indent) => {
      const value: unknown = JSON.parse(text);
      const room = { values: 1_000 };
      expect(faultOfJson(Buffer.from(JSON.stringify(value, null, indent)), room)).toBeUndefined();
      expect(1_000 - room.values).toBe(countOf(value));
    }),
    { numRuns: 500 },
  );
});

it.each([
  ["numbers", (count: number) => `[${"1,".repeat(count - 2)}1]`],
  ["empty objects", (count: number) => `[${"{},".repeat(count - 2)}{}]`],
  ["members", (count: number) => `{${'"a":0,'.repeat(count - 2)}"a":0}`],
])("takes as many %s as may be, and not one more", (_, make) => {
  expect(scan(make(MAX_JSON_VALUES))).toBeUndefined();
  expect(scan(make(MAX_JSON_VALUES + 1))).toContain("more than 100000 JSON values");
});

it("takes text as deep as may be, and not deeper", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}1${"]".repeat(depth)}`;
  expect(scan(nested(MAX_JSON_DEPTH))).toBeUndefined();
  expect(scan(nested(MAX_JSON_DEPTH + 1))).toContain("deeper than 200 levels");
  expect(scan("[".repeat(1_000_000))).toContain("deeper than 200 levels");
});

it.each([
  ["commas", ","],
  ["brackets", "[{"],
  ["escaped quotes", '\\",'],
  ["escaped backslashes", "\\\\,"],
  ["other characters", "ł☃,"],
])("counts no %s within strings", (_, text) => {
  for (const length of [10, MAX_JSON_VALUES * 2]) {
    const strings = `["${text.repeat(length)}", "${text.repeat(31)}"]`;
    const room = { values: 10 };
    expect(faultOfJson(Buffer.from(strings), room)).toBeUndefined();
    expect(room.values).toBe(7);
  }
});

it("ends where a string does not", () => {
  expect(scan(`["${"x".repeat(1_000)}`)).toBeUndefined();
  expect(scan(`["${"\\".repeat(1_001)}`)).toBeUndefined();
});
