import { expect, it } from "vitest";
import { TokenBucket } from "../../src/time/token-bucket.ts";

function budgetAt(perSecond: number) {
  const clock = { nowMs: 1_750_000_000_000 };
  const budget = new TokenBucket(perSecond, () => clock.nowMs);
  const takeAll = (): number => {
    let taken = 0;
    while (budget.take()) {
      taken += 1;
    }
    return taken;
  };
  return { clock, takeAll };
}

it("gives so many at once, and then as many as the time that passed allows", () => {
  const { clock, takeAll } = budgetAt(100);
  expect(takeAll()).toBe(100);
  clock.nowMs += 50;
  expect(takeAll()).toBe(5);
  clock.nowMs += 5;
  expect(takeAll()).toBe(0);
  clock.nowMs += 5;
  expect(takeAll()).toBe(1);
});

it("saves up no more than a second's", () => {
  const { clock, takeAll } = budgetAt(10);
  clock.nowMs += 60_000;
  expect(takeAll()).toBe(10);
});

it("goes on when the clock goes back", () => {
  const { clock, takeAll } = budgetAt(10);
  takeAll();
  clock.nowMs -= 60_000;
  expect(takeAll()).toBe(0);
  clock.nowMs += 1_000;
  expect(takeAll()).toBe(10);
});
