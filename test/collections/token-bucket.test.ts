import { expect, it } from "vitest";
import { perSecond, TokenBucket } from "../../src/collections/token-bucket.ts";

function budgetAt(tokens: number) {
  const clock = { nowMs: 1_750_000_000_000 };
  const budget = new TokenBucket({ ...perSecond(tokens), nowMs: () => clock.nowMs });
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

it("goes into debt as far as it is allowed, and says when it is out of it", () => {
  const bucket = new TokenBucket({ size: 10, refillMs: 100, nowMs: () => 0 });
  expect([bucket.take(15), bucket.take(15, 5), bucket.take(1, 5)]).toEqual([false, true, false]);
  expect([bucket.msUntil(0), bucket.msUntil(1)]).toEqual([500, 600]);
  bucket.giveBack();
  expect(bucket.msUntil(0)).toBe(400);
});

it("is spent below its least only where it has none", () => {
  const bucket = new TokenBucket({ size: 2, refillMs: 100, nowMs: () => 0 });
  expect(bucket.isFull).toBe(true);
  expect(bucket.spend(5, 0)).toBe(0);
  expect([bucket.isFull, bucket.msUntil(1)]).toEqual([false, 100]);
  expect(bucket.spend(5)).toBe(500);
  expect(bucket.msUntil(0)).toBe(500);
});
