import { expect, it } from "vitest";
import { GpuTime } from "../../../src/pool/gpus/gpu-time.ts";

it("a call alone has all GPUs of its worker for as long as it runs", () => {
  let nowMs = 1_000;
  const time = new GpuTime(2, () => nowMs);
  nowMs += 5_000;
  const end = time.begin();
  nowMs += 300;
  expect(end()).toBe(600);
  nowMs += 9_000;
  const next = time.begin();
  nowMs += 10;
  expect(next()).toBe(20);
});

it("calls that run at a time share them, and have together what the worker had", () => {
  let nowMs = 0;
  const time = new GpuTime(0.5, () => nowMs);
  const first = time.begin();
  nowMs += 100;
  const second = time.begin();
  nowMs += 100;
  const third = time.begin();
  nowMs += 300;
  const had = [first(), second()];
  nowMs += 100;
  had.push(third());
  expect(had).toEqual([50 + 25 + 50, 25 + 50, 50 + 50]);
  expect(had.reduce((sum, ms) => sum + ms)).toBe(600 * 0.5);
});
