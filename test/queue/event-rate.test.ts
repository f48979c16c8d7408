import { describe, expect, test } from "vitest";
import { EventRateLimit } from "../../src/queue/event-rate.ts";

describe("what an attempt reports", () => {
  test("is kept whole at first, and thinned out when it goes on for long", () => {
    const pace = new EventRateLimit();
    const dayMs = 24 * 3_600_000;
    let kept = 0;
    for (let timeMs = 0; timeMs < dayMs; timeMs += 50) {
      kept += pace.admitProgress(0.5, timeMs) ? 1 : 0;
    }
    expect(kept).toBeGreaterThan(1_000);
    expect(kept).toBeLessThan(10_000);
  });

  test("always has the end of the progress", () => {
    const pace = new EventRateLimit();
    for (let index = 0; index < 5_000; index++) {
      pace.admitProgress(0.5, index);
    }
    expect(pace.admitProgress(0.9, 5_000)).toBe(false);
    expect(pace.admitProgress(1, 5_000)).toBe(true);
  });

  test("numbers its log lines, and counts them as events", () => {
    const pace = new EventRateLimit();
    const numbers = Array.from({ length: 1_000 }, () => pace.nextLine());
    expect(numbers.slice(0, 3)).toEqual([1, 2, 3]);
    expect(numbers.at(-1)).toBe(1_000);
    expect(pace.admitProgress(0.5, 0)).toBe(true);
    expect(pace.admitProgress(0.6, 1)).toBe(false);
  });
});
