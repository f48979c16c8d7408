import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MachineEnd } from "../../src/agent/until.ts";

const MINUTE_MS = 60_000;
const NOW_MS = Date.UTC(2026, 0, 31, 12);

beforeEach(() => {
  vi.useFakeTimers({ now: NOW_MS });
});
afterEach(() => {
  vi.useRealTimers();
});

function endingOf(untilMs: number | undefined, leave = new AbortController().signal): MachineEnd {
  const endpoints = [{ timeoutMs: 1_000 }, { timeoutMs: 10 * MINUTE_MS }];
  return new MachineEnd({ manifestJson: JSON.stringify({ endpoints }) }, { untilMs, leave });
}

it("comes when the longest call might not end before the machine, with half a minute to spare", () => {
  using ending = endingOf(NOW_MS + 60 * MINUTE_MS);
  vi.advanceTimersByTime(49.5 * MINUTE_MS - 1);
  expect(ending.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(ending.signal.aborted).toBe(true);
  expect(ending.longestMs).toBe(10 * MINUTE_MS);
});

it("is there at once where the machine ends too soon", () => {
  using ending = endingOf(NOW_MS + 10.5 * MINUTE_MS);
  expect(ending.signal.aborted).toBe(true);
});

it("does not come on a machine that stays", () => {
  using ending = endingOf(undefined);
  vi.advanceTimersByTime(59 * 86_400_000);
  expect(ending.signal.aborted).toBe(false);
});

it("comes in time where that is longer away than a timer counts", () => {
  using ending = endingOf(NOW_MS + 60 * 86_400_000);
  vi.advanceTimersByTime(59 * 86_400_000);
  expect(ending.signal.aborted).toBe(false);
  vi.advanceTimersByTime(86_400_000 - 10.5 * MINUTE_MS);
  expect(ending.signal.aborted).toBe(true);
});

it("comes with any other reason to leave", () => {
  const leave = new AbortController();
  using ending = endingOf(NOW_MS + 60 * MINUTE_MS, leave.signal);
  leave.abort();
  expect(ending.signal.aborted).toBe(true);
});
