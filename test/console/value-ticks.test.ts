import { describe, expect, it } from "vitest";
import {
  type AxisOptions,
  axisRange,
  valueTicks,
} from "../../src/console/app/pages/charts/value-ticks.ts";

/** The ticks of an axis that is made for values between two. */
function ticksFor(min: number, max: number, options: Partial<AxisOptions> = {}): number[] {
  const all = { heightPx: 180, ...options };
  return valueTicks(...axisRange(min, max, all), all);
}

describe("the ticks of an axis of values", () => {
  it("are round, and go from zero to above all values", () => {
    expect(ticksFor(0, 0.55)).toEqual([0, 0.2, 0.4, 0.6]);
    expect(ticksFor(3, 35)).toEqual([0, 20, 40]);
    expect(ticksFor(0, 0.3)).toEqual([0, 0.1, 0.2, 0.3]);
    expect(ticksFor(0, 800)).toEqual([0, 500, 1_000]);
    expect(ticksFor(0, 0.4, { heightPx: 80 })).toEqual([0, 0.2, 0.4]);
    for (let max = 0.001; max < 1e6; max *= 1.07) {
      const ticks = ticksFor(0, max);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(Number(max.toPrecision(12)));
      expect(ticks.length, `${max}: ${ticks}`).toBeGreaterThanOrEqual(2);
      expect(ticks.length, `${max}: ${ticks}`).toBeLessThanOrEqual(4);
    }
  });

  it("are whole numbers of things that are counted, and powers of two of bytes", () => {
    expect(ticksFor(0, 1, { isWhole: true })).toEqual([0, 1]);
    expect(ticksFor(0, 4, { isWhole: true })).toEqual([0, 2, 4]);
    expect(ticksFor(0, 700 * 1_024, { binary: true })).toEqual([
      0,
      256 * 1_024,
      512 * 1_024,
      768 * 1_024,
    ]);
  });

  it("are there without values, and below zero", () => {
    expect(ticksFor(0, 0)).toEqual([0, 0.5, 1]);
    expect(ticksFor(-4, 5)).toEqual([-5, 0, 5]);
    expect(ticksFor(-4, -1)).toEqual([-4, -2, 0]);
  });

  it("are near values that differ little, where the axis is fitted", () => {
    expect(ticksFor(0.91, 0.97, { isFitted: true })).toEqual([0.92, 0.94, 0.96]);
    expect(ticksFor(0, 0.97, { isFitted: true })).toEqual([0, 0.5, 1]);
    expect(ticksFor(0.9, 0.999, { isFitted: true }).at(-1)).toBe(1);
    expect(axisRange(0.9, 0.999, { heightPx: 180, isFitted: true })[1]).toBe(1);
  });
});
