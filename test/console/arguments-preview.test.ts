import { expect, it } from "vitest";
import { previewOf } from "../../src/console/app/pages/tasks/arguments-preview.ts";
import { threadTimer } from "../thread-time.ts";

const long = "x".repeat(50);

it.each([
  ["{}", ""],
  ['{"length":7}', "length: 7"],
  ['{"city":"Lisbon","tags":["a","b"]}', 'city: Lisbon, tags: ["a", "b"]'],
  [
    '{"none":"","nothing":null,"list":[],"object":{}}',
    "none: , nothing: null, list: [], object: {}",
  ],
  ['{"id":9007199254740993,"share":1.0,"odd":NaN}', "id: 9007199254740993, share: 1.0, odd: NaN"],
  [JSON.stringify({ texts: Array(200).fill("x"), sentences: 2 }), "texts: 200 items, sentences: 2"],
  [JSON.stringify({ texts: Array(200).fill(long.repeat(9)), n: 2 }), "texts: 200 items, n: 2"],
  ['{ "values" : [1, 2], "mode" : "fast" }', "values: [1, 2], mode: fast"],
  [JSON.stringify({ a: { b: long, c: 1 }, d: 2 }), `a: {b: "${"x".repeat(40)}…", …}, d: 2`],
  [JSON.stringify({ a: long, b: 1 }), `a: ${"x".repeat(40)}…, b: 1`],
  [JSON.stringify({ a: long }), `a: ${long}`],
  ["7", "7"],
  ["[1,2]", "[1, 2]"],
  ["", ""],
])("the arguments %j are told as %j", (json, told) => {
  expect(previewOf(json)).toBe(told);
});

it.each([
  ['{"sentences":2,"texts":["A short, old his', 'sentences: 2, texts: ["A short, old his…'],
  ['{"texts":["A short history","of', 'texts: ["A short history", "of…'],
  ['{"text":"one\\n\\ntwo', "text: one two…"],
  ['{"text":"one\\u00e', "text: one…"],
  ['{"text":"one\\', "text: one…"],
  ['{"text":"one"', "text: one, …"],
  ['{"box":{"text":"one', 'box: {text: "one…'],
  ['{"values":[0.1,0.2,0.3', "values: [0.1, 0.2, …"],
  [`{"values":[${"0.25,".repeat(40)}`, `values: [${"0.25, ".repeat(40)}…`],
  ['{"rows":[{"id":1,"name":"a"},{"id":2,"na', 'rows: [{id: 1, name: "a"}, {id: 2, …'],
  ['{"count":12', "count: 12…"],
  ['{"a":1,"b":', "a: 1, b: …"],
  ['{"a":1,"b"', "a: 1, b: …"],
  ['{"a":1,"te', "a: 1, …"],
  ['{"te', "…"],
  ["{", "…"],
  ["[1,2", "[1, …"],
])("the arguments that begin with %j are told as %j", (json, told) => {
  expect(previewOf(json)).toBe(told);
});

it("what is told of cut arguments is true of them, wherever they are cut", () => {
  const json = JSON.stringify({
    ...{
      mode: 'say "no"',
      values: [0.1, -2e9],
      box: { deep: [[{ a: "é\n" }]] },
      more: null,
      n: 12,
    },
  });
  const whole = previewOf(json);
  expect(whole).toBe(
    'mode: say "no", values: [0.1, -2000000000], box: {deep: [[{a: "é"}]]}, more: null, n: 12',
  );
  for (let end = 1; end < json.length; end += 1) {
    const told = previewOf(json.slice(0, end));
    expect(told.endsWith("…")).toBe(true);
    expect(whole.startsWith(told.replace(/(?:, )?…$/, ""))).toBe(true);
  }
});

it("a list of 90,000 numbers is told by its length, at once", () => {
  const values = Array.from({ length: 90_000 }, (_, index) => index / 7);
  const json = JSON.stringify({
    values: values.map((it) => it.toFixed(3)).map(Number),
    mode: "fast",
  });
  const spentMs = threadTimer();
  expect(previewOf(json)).toBe("values: 90,000 items, mode: fast");
  expect(spentMs()).toBeLessThan(500);
});

it.each(["[", '{"a":', '{"a":[1,', '"', "x]", "\\u"])(
  "%s again and again takes bounded time",
  (part) => {
    expect(previewOf(part.repeat(100_000)).length).toBeLessThan(5_000);
  },
);
