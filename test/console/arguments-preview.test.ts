import { expect, it } from "vitest";
import { previewOf } from "../../src/console/app/pages/tasks/arguments-preview.ts";

const long = "x".repeat(50);

it.each([
  ["{}", ""],
  ['{"length":7}', "length: 7"],
  ['{"city":"Lisbon","tags":["a","b"]}', 'city: Lisbon, tags: ["a","b"]'],
  [JSON.stringify({ texts: Array(200).fill("x"), sentences: 2 }), "texts: 200 items, sentences: 2"],
  [JSON.stringify({ a: { b: long, c: 1 } }), "a: 2 fields"],
  [JSON.stringify({ a: long }), `a: ${"x".repeat(40)}…`],
  ['{"sentences":2,"texts":["A short, old his', 'sentences: 2, texts: ["A short, old his…'],
  ['{"texts":["A short history","of', 'texts: ["A short history","of…'],
  ['{"text":"one\\n\\ntwo', "text: one two…"],
  ['{"box":{"text":"one', 'box: {"text":"one…'],
  ['{"te', '"te…'],
  ["[1,2", "[1,2…"],
  ["", "…"],
])("the arguments %j are told as %j", (json, told) => {
  expect(previewOf(json)).toBe(told);
});

it("the preview of a long cut text takes bounded time", () => {
  expect(previewOf(`{"a":[${"1,".repeat(200)}`)).toMatch(/^a: \[1,1,/);
});
