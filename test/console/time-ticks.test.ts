import { describe, expect, it } from "vitest";
import { isFine, ticksBetween } from "../../src/console/app/pages/charts/time-ticks.ts";

const at = (day: number, hour: number, minute = 0, second = 0) =>
  new Date(2026, 10, day, hour, minute, second).getTime() / 1_000;

/** The times of day of ticks, with their days. */
const told = (ticks: readonly number[]) =>
  ticks.map((tick) => {
    const time = new Date(tick * 1_000);
    return `${time.getDate()} ${time.toTimeString().slice(0, 8)}`;
  });

describe("the ticks of an axis of time", () => {
  it("are round times that have room for their labels", () => {
    expect(told(ticksBetween(at(29, 14, 42, 50), at(29, 14, 44, 20), 385))).toEqual([
      ...["29 14:43:00", "29 14:43:20", "29 14:43:40", "29 14:44:00"],
    ]);
    expect(told(ticksBetween(at(29, 13, 7), at(29, 14, 7), 385))).toEqual([
      ...["29 13:20:00", "29 13:30:00", "29 13:40:00", "29 13:50:00", "29 14:00:00"],
    ]);
    expect(told(ticksBetween(at(28, 15), at(29, 15), 385))).toEqual([
      ...["28 20:00:00", "29 00:00:00", "29 04:00:00", "29 08:00:00", "29 12:00:00"],
    ]);
    expect(told(ticksBetween(at(22, 15), at(29, 15), 385))).toEqual([
      ...["24 00:00:00", "26 00:00:00", "28 00:00:00"],
    ]);
  });

  it("are at least three, in any range and width, with room and uncut", () => {
    for (const lengthS of [60, 90, 100, 150, 240, 900, 3_600, 5_000, 21_600, 86_400, 604_800]) {
      for (const widthPx of [230, 260, 330, 385, 900]) {
        for (const beginS of [at(29, 14, 42, 50), at(29, 23, 59, 59), at(28, 0)]) {
          const endS = beginS + lengthS;
          const ticks = ticksBetween(beginS, endS, widthPx);
          const places = ticks.map((tick) => ((tick - beginS) / lengthS) * widthPx);
          const labelPx = isFine(ticks) ? 56 : 42;
          const what = `${lengthS} s in ${widthPx} px from ${told([beginS])}: ${told(ticks)}`;
          expect(ticks.length, what).toBeGreaterThanOrEqual(3);
          expect((places[0] ?? 0) - labelPx / 2, what).toBeGreaterThanOrEqual(0);
          expect((places.at(-1) ?? 0) + labelPx / 2, what).toBeLessThanOrEqual(widthPx);
          const gaps = places.slice(1).map((place, index) => place - (places[index] ?? 0));
          expect(Math.min(...gaps), what).toBeGreaterThan(labelPx);
        }
      }
    }
  });

  it("end where there is no length, and no width", () => {
    expect(ticksBetween(5, 5, 300).length).toBe(1);
    expect(ticksBetween(0, 3_600, 0).length).toBe(3);
  });
});
