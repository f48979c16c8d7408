import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { formatNumber } from "../../src/metrics/number.ts";

it("writes 1,000 numbers as Go does", () => {
  // Made by strconv.FormatFloat(v, 'g', -1, 64): the bits of a number, and its text.
  const lines = readFileSync(new URL("numbers.txt", import.meta.url), "utf8")
    .trimEnd()
    .split("\n");
  expect(lines.length).toBeGreaterThan(1_000);
  const different = lines.filter((line) => {
    const [bits = "", text] = line.split(" ");
    return formatNumber(Buffer.from(bits, "hex").readDoubleBE()) !== text;
  });
  expect(different).toEqual([]);
});

it.each([
  [1e6, "1e+06"],
  [1e-5, "1e-05"],
  [999_999, "999999"],
  [1_234_567, "1.234567e+06"],
  [1e100, "1e+100"],
  [-0, "0"],
  [Number.POSITIVE_INFINITY, "+Inf"],
  [Number.NEGATIVE_INFINITY, "-Inf"],
  [Number.NaN, "NaN"],
])("writes %d as %s", (value, text) => {
  expect(formatNumber(value)).toBe(text);
});
