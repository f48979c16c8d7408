import assert from "node:assert/strict";
import { test } from "node:test";
import { countWords } from "./words.ts";

test("counts words, and no punctuation", () => {
  assert.equal(countWords("The moon, pulls the sea!"), 5);
});

test("an empty text has no words", () => {
  assert.equal(countWords(""), 0);
});
