import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { rank, similarities } from "../../examples/summarizer/lexrank.ts";
import { splitSentences } from "../../examples/summarizer/sentences.ts";
import { MAX_SENTENCES, summarize, TextTooLong } from "../../examples/summarizer/summary.ts";
import { contentWords } from "../../examples/summarizer/words.ts";

const folder = new URL("../../examples/summarizer/articles/", import.meta.url);
const names = readdirSync(folder);

function article(name: string): string {
  return readFileSync(new URL(name, folder), "utf8");
}

describe("splitting into sentences", () => {
  test.each([
    ["decimals and prices", ["It cost $4.50.", "He had 3.5 metres."]],
    ["titles", ["Dr. Smith met Mrs. Jones.", "They talked."]],
    ["initials", ["Then J. S. Bach played.", "Susan B. Anthony listened."]],
    ["abbreviated names", ["The U.S. Navy came.", "He is from the U.S.", "He left."]],
    ["a letter at the end", ["He took vitamin C.", "Then he slept."]],
    ["numbered things", ["See Fig. 3 and No. 5.", "No.", "I said so."]],
    ["times of day", ["It began at 9 p.m. on Monday.", "It was dark."]],
    ["quotations", ["“Really?” she asked.", "“Yes!” he said."]],
    ["brackets", ["(It was late.)", "They went."]],
    ["other scripts", ["これは文です。", "次の文です。"]],
  ])("copes with %s", (_, sentences) => {
    expect(splitSentences(sentences.join(" "))).toEqual(sentences);
  });

  test("ends a sentence at the end of a paragraph but not at the end of a line", () => {
    expect(splitSentences("A title\n\nA sentence\nover two lines.\n")).toEqual([
      "A title",
      "A sentence over two lines.",
    ]);
  });

  test("finds nothing in empty text", () => {
    expect(splitSentences(" \n\n ")).toEqual([]);
  });
});

test("words are compared without case, plural and stop words", () => {
  expect(contentWords("The Lenses of the lighthouses weren't a city's.")).toEqual(
    contentWords("lense lighthouse city"),
  );
});

test("ranks sum to one and the sentence that shares most is the highest", () => {
  const ranks = rank(similarities([["a", "b"], ["a", "x"], ["b", "y"], ["z"], []]));
  expect(ranks.reduce((sum, value) => sum + value)).toBeCloseTo(1);
  expect(ranks.indexOf(Math.max(...ranks))).toBe(0);
});

describe("summarizing", () => {
  test.each([
    ["bicycle.txt", "The bicycle began as a machine without pedals."],
    ["honeybees.txt", "A bee that has found rich nectar dances longer"],
    ["lighthouses.txt", "only the curved surface of a lens bends the light"],
    ["printing.txt", "began to print books with separate metal letters"],
    ["tides.txt", "these are the spring tides"],
  ])("picks what %s is about", (name, telling) => {
    expect(summarize(article(name), 3)).toContain(telling);
  });

  test.each(names)("takes sentences of %s word for word, in order, none twice", (name) => {
    const sentences = splitSentences(article(name));
    const summary = splitSentences(summarize(article(name), 5));
    const places = summary.map((sentence) => sentences.indexOf(sentence));
    expect(places).toHaveLength(5);
    expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
    expect(places[0]).toBeGreaterThan(0);
  });

  test("says the same every time", () => {
    expect(summarize(article("tides.txt"), 4)).toBe(summarize(article("tides.txt"), 4));
  });

  test("does not repeat a sentence as long as there are others", () => {
    const text = `${"The old harbour is full of small fishing boats. ".repeat(3)}
      The harbour was built by monks in the twelfth century.`;
    expect(summarize(text, 2)).toBe(
      "The old harbour is full of small fishing boats. The harbour was built by monks in the twelfth century.",
    );
  });

  test("gives back a text that has no more sentences than asked for", () => {
    expect(summarize("Just these words", 3)).toBe("Just these words");
    expect(summarize("It rains. So we stay.", 3)).toBe("It rains. So we stay.");
  });

  test("answers nothing for empty text", () => {
    expect(summarize("", 3)).toBe("");
    expect(summarize(" \n\n ", 3)).toBe("");
  });

  test("works on text without any word", () => {
    expect(summarize("1. !? ...", 2)).not.toBe("");
  });

  test("summarizes scripts without spaces and joins the sentences without one", () => {
    const text = "猫は魚を食べる。犬は肉を食べる。猫は魚が好きで、犬は肉が好きだ。空は青い。";
    const summary = summarize(text, 2);
    expect(summary).toContain("猫は魚");
    expect(summary).not.toContain("空は青い");
    expect(summary).not.toContain(" ");
  });

  test("takes the largest text that is allowed and refuses a larger one", () => {
    const sentence = (_: unknown, i: number) => `Ship ${i % 97} met storm ${i % 89} at ${i} miles.`;
    const longest = Array.from({ length: MAX_SENTENCES }, sentence).join("\n\n");
    expect(splitSentences(summarize(longest, 3))).toHaveLength(3);
    expect(() => summarize(`${longest}\n\nOne more.`, 3)).toThrow(TextTooLong);
    expect(() => summarize(`${longest}\n\nOne more.`, 3)).toThrow("2,001 sentences, at most 2,000");
  });
});
