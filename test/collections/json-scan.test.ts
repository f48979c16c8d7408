import fc from "fast-check";
import { expect, it } from "vitest";
import { faultOfJson, MAX_JSON_VALUES } from "../../src/collections/json-bounds.ts";
import { type JsonShape, KIND } from "../../src/collections/json-kinds.ts";
import { JsonFault, MAX_JSON_DEPTH, scanJson } from "../../src/collections/json-scan.ts";

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

function isTaken(text: string): boolean {
  try {
    scanJson(Buffer.from(text));
    return true;
  } catch (err) {
    expect(err).toBeInstanceOf(JsonFault);
    return false;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

it("takes what a parser takes, and nothing else", () => {
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"',
    "1",
    "-",
    "0",
    ".",
    "e+",
    "true",
    "nul",
  ];
  const mangled = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom(...pieces, "\\u12", "\t", " ", "", "\u0001", "ä"))
    .map(([text, at, piece]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + piece + text.slice(place + (at % 2));
    });
  const made = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((all) => all.join(""));
  fc.assert(
    fc.property(fc.oneof(fc.json(), mangled, made), (text) => {
      expect(isTaken(text)).toBe(isJson(text));
    }),
    { numRuns: 3_000 },
  );
});

it("finds the members of an object, and what they are made of", () => {
  const text = ' { "a\\u0041": [[1, 2.5], [ ]], "b":{"c":"x"} , "n": 12345678901234567890 }';
  const { members } = scanJson(Buffer.from(text));
  const found = members?.map(({ name, start, end }) => [name, text.slice(start, end)]);
  expect(found).toEqual([
    ["aA", "[[1, 2.5], [ ]]"],
    ["b", '{"c":"x"}'],
    ["n", "12345678901234567890"],
  ]);
  const [, second, third] = members ?? [];
  expect(second?.objects).toBe(3);
  expect(third).toMatchObject({ inexact: "12345678901234567890", hasConstants: false });
});

it("says whether the members of an object have their shapes", () => {
  const text = Buffer.from('{"a": [[1, 2.5], []], "b": [[1], [2]], "c": {"x": 1}, "d": 1}');
  const list = (kinds: number, minItems: number) => ({
    kinds: KIND.array,
    items: { kinds: KIND.array, items: { kinds }, minItems },
  });
  const fitting = (shapes: Record<string, JsonShape>) =>
    scanJson(text, { shapes: new Map(Object.entries(shapes)) })
      .members?.filter(({ isFit }) => isFit)
      .map(({ name }) => name);
  expect(fitting({})).toEqual([]);
  const { integer, fraction } = KIND;
  expect(fitting({ a: list(integer | fraction, 0), b: list(integer, 1) })).toEqual(["a", "b"]);
  expect(fitting({ a: list(integer | fraction, 1), b: list(integer, 1) })).toEqual(["b"]);
  expect(fitting({ a: list(integer, 0), d: { kinds: integer } })).toEqual(["d"]);
  expect(fitting({ c: { kinds: KIND.object }, d: { kinds: KIND.string } })).toEqual(["c"]);
});

it("takes the numbers of Python where it may", () => {
  const text = Buffer.from("[NaN, -Infinity, Infinity, 1]");
  expect(scanJson(text, { constants: true })).toMatchObject({ hasConstants: true, values: 5 });
  expect(() => scanJson(text)).toThrow("NaN at byte 1 is no number of JSON");
  for (const wrong of ["-NaN", "nan", "Infinit", "[NaNa]", "+Infinity"]) {
    expect(() => scanJson(Buffer.from(wrong), { constants: true }), wrong).toThrow(JsonFault);
  }
});
