import { describe, expect, test } from "vitest";
import { EventRateLimit } from "../../../src/queue/events/rate-limit.ts";

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

  test("numbers its log lines, with those that were left out, and counts them as events", () => {
    const pace = new EventRateLimit();
    const numbers = Array.from({ length: 1_000 }, () => pace.nextLine(0).line);
    expect(numbers.slice(0, 3)).toEqual([1, 2, 3]);
    expect(numbers.at(-1)).toBe(1_000);
    expect(pace.nextLine(500).line).toBe(1_501);
    expect(pace.nextLine(Number.MAX_SAFE_INTEGER).line).toBe(2 ** 31 - 1);
    expect(pace.admitProgress(0.5, 0)).toBe(true);
    expect(pace.admitProgress(0.6, 1)).toBe(false);
  });

  test("displaces lines between the first 200 and the last 800, a hundred at a time", () => {
    const pace = new EventRateLimit();
    const places = Array.from({ length: 2_350 }, () => pace.nextLine(0));
    expect(places.filter(({ displaces }) => displaces)).toEqual(
      Array.from({ length: 13 }, (_, index) => ({
        line: 1_100 + index * 100,
        displaces: { first: 201, last: 300 + index * 100 },
      })),
    );
  });

  test("displaces lines as seldom when others are left out", () => {
    const pace = new EventRateLimit();
    const places = Array.from({ length: 2_000 }, () => pace.nextLine(99));
    expect(places.filter(({ displaces }) => displaces)).toHaveLength(10);
    expect(places.at(-1)).toEqual({ line: 200_000, displaces: { first: 201, last: 199_200 } });
  });
});
