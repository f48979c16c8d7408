import { afterEach, expect, it, vi } from "vitest";
import { DatabaseClock } from "../../../src/storage/postgres/clock.ts";

const NOW_MS = 1_750_000_000_000;

afterEach(() => vi.useRealTimers());

it("is asked seldom, and anew when the machine has slept meanwhile", async () => {
  // The clock that moves forward stands still in sleep; the other has moved on.
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
  let asked = 0;
  let databaseMs = NOW_MS;
  const clock = new DatabaseClock({
    query: async () => {
      asked += 1;
      return [{ now_ms: databaseMs }];
    },
  });
  expect(await clock.now()).toBe(NOW_MS);
  vi.advanceTimersByTime(30_000);
  expect(await clock.now()).toBe(NOW_MS + 30_000);
  expect(asked).toBe(1);
  databaseMs = NOW_MS + 3_600_000;
  vi.setSystemTime(Date.now() + 3_570_000);
  expect(await clock.now()).toBe(databaseMs);
  expect(await clock.now()).toBe(databaseMs);
  expect(asked).toBe(2);
});
