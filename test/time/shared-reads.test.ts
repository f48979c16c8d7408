import { expect, it } from "vitest";
import { SharedReads } from "../../src/time/shared-reads.ts";

function counting() {
  const clock = { nowMs: 1_000 };
  const reads = new SharedReads<number>({ maxAgeMs: 100, now: () => clock.nowMs });
  let count = 0;
  const read = async () => {
    count += 1;
    return count;
  };
  return { clock, reads, read };
}

it("answers those who ask within the time by one read, also while it is under way", async () => {
  const { clock, reads, read } = counting();
  const both = [reads.get("a", read), reads.get("a", read)];
  expect(await Promise.all(both)).toEqual([1, 1]);
  clock.nowMs += 99;
  expect(await reads.get("a", read)).toBe(1);
  expect(await reads.get("b", read)).toBe(2);
  clock.nowMs += 1;
  expect(await reads.get("a", read)).toBe(3);
});

it("reads anew on demand, for those who ask afterwards, too", async () => {
  const { reads, read } = counting();
  await reads.get("a", read);
  expect(await reads.again("a", read)).toBe(2);
  expect(await reads.get("a", read)).toBe(2);
});

it("keeps no failure", async () => {
  const { reads, read } = counting();
  await expect(reads.get("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await reads.get("a", read)).toBe(1);
});

it("keeps a bounded number of answers, and reads again after the clock was set back", async () => {
  const { clock, reads, read } = counting();
  await reads.get("first", read);
  for (let key = 0; key < 1_000; key += 1) {
    await reads.get(String(key), read);
  }
  expect(await reads.get("first", read)).toBe(1_002);
  clock.nowMs -= 100;
  expect(await reads.get("first", read)).toBe(1_003);
});
