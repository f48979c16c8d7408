import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Alarm } from "../../src/time/alarm.ts";

const NOW_MS = 1_750_000_000_000;
const DAY_MS = 86_400_000;

let rings: number[];
let alarm: Alarm;
beforeEach(() => {
  vi.useFakeTimers({ now: NOW_MS });
  rings = [];
  alarm = new Alarm(() => rings.push(Date.now() - NOW_MS), Date.now);
});
afterEach(() => {
  alarm[Symbol.dispose]();
  vi.useRealTimers();
});

it("rings at each time it was set for, in order, and not before", () => {
  for (const inMs of [3_000, 1_000, 2_000]) {
    alarm.set(NOW_MS + inMs);
  }
  vi.advanceTimersByTime(999);
  expect(rings).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(rings).toEqual([1_000, 2_000, 3_000]);
});

it("rings once for times that are close together, never early", () => {
  for (const inMs of [101, 110, 120, 149, 150]) {
    alarm.set(NOW_MS + inMs);
  }
  vi.advanceTimersByTime(1_000);
  expect(rings).toEqual([150]);
});

it("rings at once for a time that has passed", () => {
  alarm.set(NOW_MS - 5_000);
  vi.advanceTimersByTime(0);
  expect(rings).toEqual([0]);
});

it("waits longer than a timer can", () => {
  alarm.set(NOW_MS + 60 * DAY_MS);
  vi.advanceTimersByTime(60 * DAY_MS - 1);
  expect(rings).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(rings).toEqual([60 * DAY_MS]);
});

it("keeps the nearest of more times than it remembers", () => {
  for (let second = 20_000; second > 0; second--) {
    alarm.set(NOW_MS + second * 1_000);
  }
  vi.advanceTimersByTime(2_000);
  expect(rings).toEqual([1_000, 2_000]);
});

it("rings no more once it is disposed of", () => {
  alarm.set(NOW_MS + 1_000);
  alarm[Symbol.dispose]();
  vi.advanceTimersByTime(5_000);
  expect(rings).toEqual([]);
});
