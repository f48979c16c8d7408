import { expect, it, vi } from "vitest";
import { raceAbort, within } from "../../src/time/race.ts";
import { onOwnTimers } from "../own-timers.ts";

const LATE = new Error("it is late");

it("settles as the promise does, and rejects with the reason as soon as the signal aborts", async () => {
  const { signal } = new AbortController();
  expect(await raceAbort(Promise.resolve(1), signal)).toBe(1);
  await expect(raceAbort(Promise.reject(LATE), signal)).rejects.toBe(LATE);
  const leaving = new AbortController();
  const raced = raceAbort(new Promise(() => {}), leaving.signal);
  leaving.abort(LATE);
  await expect(raced).rejects.toBe(LATE);
  await expect(raceAbort(Promise.reject(new Error("later")), leaving.signal)).rejects.toBe(LATE);
});

it(
  "settles as the promise does in time, and after that as what is said instead",
  onOwnTimers(async (left) => {
    const never = new Promise(() => {});
    const throwLate = (): never => {
      throw LATE;
    };
    expect(await within(Promise.resolve(1), 10, throwLate)).toBe(1);
    await vi.advanceTimersByTimeAsync(0);
    expect(left()).toBe(0);
    const instead = within(never, 10, () => "nothing");
    const refused = expect(within(never, 10, throwLate)).rejects.toBe(LATE);
    await vi.advanceTimersByTimeAsync(10);
    expect(await instead).toBe("nothing");
    await refused;
  }),
);
