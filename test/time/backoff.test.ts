import { expect, it, vi } from "vitest";
import { Backoff } from "../../src/time/backoff.ts";
import { onOwnTimers } from "../own-timers.ts";

it("doubles its pauses up to the longest, and begins again after what worked", () => {
  const backoff = new Backoff(100, 500);
  const pauses = [1, 2, 3, 4, 5].map(() => backoff.begin());
  expect(pauses).toEqual([100, 200, 400, 500, 500]);
  expect(backoff.nextMs).toBe(500);
  backoff.reset();
  expect(backoff.begin()).toBe(100);
});

it("takes a random part of each pause where many do the same", () => {
  const backoff = new Backoff(100, 500, () => 0.5);
  expect([1, 2, 3, 4].map(() => backoff.begin())).toEqual([50, 100, 200, 250]);
});

it(
  "ends a pause when the signal aborts, and makes none after that",
  onOwnTimers(async (left) => {
    const leaving = new AbortController();
    const backoff = new Backoff(100, 500);
    const first = backoff.pause(leaving.signal);
    await vi.advanceTimersByTimeAsync(100);
    await first;
    const second = backoff.pause(leaving.signal);
    leaving.abort();
    await second;
    await backoff.pause(leaving.signal);
    expect(left()).toBe(0);
  }),
);
