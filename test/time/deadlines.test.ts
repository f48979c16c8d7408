import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Deadlines } from "../../src/time/deadlines.ts";
import { onOwnTimers } from "../own-timers.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Waits that end at these times from now, and when each of them was seen to end. */
function waits(...afterMs: number[]) {
  const beganMs = performance.now();
  const open = new Set(afterMs.map((ms) => beganMs + ms));
  const ended: number[] = [];
  let looks = 0;
  const deadlines = new Deadlines((nowMs) => {
    looks += 1;
    for (const deadlineMs of open) {
      if (deadlineMs <= nowMs) {
        open.delete(deadlineMs);
        ended.push(performance.now() - beganMs);
      }
    }
    return Math.min(...open);
  });
  for (const deadlineMs of open) {
    deadlines.expect(deadlineMs);
  }
  return { ended, open, deadlines, beganMs, looks: () => looks };
}

test("every wait ends at its deadline, at most 50 ms late, whatever the order", () => {
  const { ended } = waits(500, 20, 20_000, 120);
  vi.advanceTimersByTime(30_000);
  expect(ended).toHaveLength(4);
  for (const [at, afterMs] of [20, 120, 500, 20_000].entries()) {
    expect(ended[at]).toBeGreaterThanOrEqual(afterMs);
    expect(ended[at]).toBeLessThanOrEqual(afterMs + 50);
  }
});

test("an earlier deadline comes before one that was expected already", () => {
  const { ended, open, deadlines, beganMs } = waits(5_000);
  open.add(beganMs + 50);
  deadlines.expect(beganMs + 50);
  vi.advanceTimersByTime(150);
  expect(ended).toHaveLength(1);
});

test("deadlines within 50 ms of each other cost one look", () => {
  const { ended, looks } = waits(...Array.from({ length: 100 }, (_, at) => 1_000 + at / 50));
  vi.advanceTimersByTime(2_000);
  expect([ended.length, looks() <= 2]).toEqual([100, true]);
});

test("a deadline further away than a timer can count is reached in its time", () => {
  const afterMs = 2 ** 31 + 5_000;
  const { ended } = waits(afterMs);
  vi.advanceTimersByTime(2 ** 31);
  expect(ended).toEqual([]);
  vi.advanceTimersByTime(6_000);
  expect(ended).toHaveLength(1);
});

test(
  "what was cleared is looked at no more, and what is expected later is",
  onOwnTimers((left) => {
    const { ended, open, deadlines, beganMs, looks } = waits(100);
    deadlines.clear();
    vi.advanceTimersByTime(1_000);
    expect([ended, looks(), left()]).toEqual([[], 0, 0]);
    open.clear();
    open.add(beganMs + 1_200);
    deadlines.expect(beganMs + 1_200);
    vi.advanceTimersByTime(1_000);
    expect([ended.length, looks()]).toEqual([1, 1]);
  }),
);
