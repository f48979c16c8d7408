import { describe, expect, it } from "vitest";
import { readNumberArray } from "../../src/collections/number-array.ts";
import { threadTimer } from "../thread-time.ts";

const read = (text: string, at = 0) => readNumberArray(Buffer.from(text), at);
const waves = (count: number) => Array.from({ length: count }, (_, index) => Math.sin(index));
const rows = (count: number, each: () => unknown) => Array.from({ length: count }, each);

describe("an array of numbers", () => {
  it.each([
    ["of one dimension, longer than a piece", waves(20_000), [20_000]],
    ["of two", rows(30, () => waves(40)), [30, 40]],
    ["of four", rows(2, () => rows(3, () => rows(4, () => waves(8)))), [2, 3, 4, 8]],
    ["with integers and exponents among them", [1, 2e-300, -7.25, 1e18, ...waves(9)], [13]],
  ])("%s is read as a parser reads it", (_, value, shape) => {
    const text = JSON.stringify(value);
    const found = read(`{"a":${text},"b":1}`, 5);
    expect(found?.shape).toEqual(shape);
    expect(found?.end).toBe(5 + text.length);
    expect([...(found?.numbers ?? [])]).toEqual(value.flat(Number.POSITIVE_INFINITY));
  });

  it("may have a space after each comma, as Python writes it", () => {
    const row = waves(10);
    const text = JSON.stringify([row, row]).replaceAll(",", ", ");
    expect(read(text)).toMatchObject({ shape: [2, 10], end: text.length });
  });

  const good = waves(8).join(",");

  it.each([
    ["no list", "1.5"],
    ["an empty list", "[]"],
    ["integers alone", `[${rows(40, () => "12345678").join(",")}]`],
    ["whole numbers alone", `[${rows(40, () => "12345678.0").join(",")}]`],
    ["null", `[${good},null]`],
    ["a truth", `[${good},true]`],
    ["a text", `[${good},"0.5"]`],
    ["a number of Python", `[${good},NaN]`],
    ["a zero with a sign, which is an integer or not", `[${good},-0]`],
    ["an integer of more than 64 bits", `[${good},18446744073709551616]`],
    ["a number beyond doubles", `[${good},1e999]`],
    ["a number that is none", `[${good},01]`],
    ["no number between commas", `[${good},,1]`],
    ["no number at the end", `[${good},]`],
    ["a list beside numbers", `[${good},[${good}]]`],
    ["numbers beside a list", `[[${good}],${good}]`],
    ["lists of different lengths", `[[${good}],[${good},0.25]]`],
    ["lists of different lengths further out", `[[[${good}],[${good}]],[[${good}]]]`],
    ["lists of different depths", `[[[${good}]],[${good}]]`],
    ["an empty list in it", `[[${good}],[]]`],
    ["short rows", `[${rows(40, () => "[0.12345678,0.12345678]").join(",")}]`],
    ["no end", `[${good}`],
    ["no end of the outer list", `[[${good}],[${good}]`],
    ["something else after a list", `[[${good}];[${good}]]`],
    ["nine dimensions", `${"[".repeat(9)}${good}${"]".repeat(9)}`],
    ["a letter that is none of JSON", `[${good},1é]`],
  ])("is left to others with %s", (_, text) => {
    expect(read(text)).toBeUndefined();
  });

  it("is read in no more time the more of them follow", () => {
    const row = `[${rows(8, () => "0.12345678").join(",")}]`;
    const text = Buffer.from(row.repeat(20_000));
    const spentMs = threadTimer();
    let count = 0;
    for (let at = 0; at < text.length; at = readNumberArray(text, at)?.end ?? text.length) {
      count++;
    }
    expect(count).toBe(20_000);
    // Room for all that follows, each time, takes some seconds.
    expect(spentMs()).toBeLessThan(1_000);
  });

  it("takes no more memory than its text", () => {
    expect(read(`[${rows(100, () => "0.5").join(",")}]`)).toBeUndefined();
    const text = `[${rows(100, () => "0.123456").join(",")}]`;
    expect(read(text)?.numbers.buffer.byteLength).toBe(800);
    expect(text.length).toBeGreaterThan(800);
  });
});
