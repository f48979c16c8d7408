import { expect, it } from "vitest";
import { rateText, TransferRate } from "../../src/cli/progress.ts";

const MEBIBYTE = 1024 ** 2;

it("a transfer is told as fast as it was in the last ten seconds", () => {
  const rate = new TransferRate();
  expect(rate.at(0, 0)).toBeUndefined();
  expect(rate.at(MEBIBYTE, 999)).toBeUndefined();
  expect(rate.at(2 * MEBIBYTE, 2_000)).toBe(MEBIBYTE);
  // It stands still.
  for (let atMs = 3_000; atMs < 13_000; atMs += 1_000) {
    rate.at(2 * MEBIBYTE, atMs);
  }
  expect(rate.at(2 * MEBIBYTE, 13_000)).toBe(0);
  // What a broken connection had sent is sent again.
  expect(rate.at(MEBIBYTE, 13_500)).toBeLessThan(0);
});

it("the time left is that of the rate, and nothing is said without one", () => {
  expect(rateText(2 * MEBIBYTE, 600 * MEBIBYTE)).toBe(", 2.0 MiB/s, 5m left");
  expect(rateText(undefined, MEBIBYTE)).toBe("");
  expect(rateText(0, MEBIBYTE)).toBe("");
  expect(rateText(-5, MEBIBYTE)).toBe("");
});
