import { describe, expect, it } from "vitest";
import { Metric } from "../../../gen/tessera/v1/metrics_pb.js";
import { MEASURE_NAMES } from "../../../src/metrics/history/measures.ts";
import { percentile } from "../../../src/metrics/history/percentile.ts";
import { MAX_POINTS, rangeOf, resolutionOf } from "../../../src/metrics/history/range.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_005_000;

const of = (lengthMs: number, maxPoints = 0) =>
  rangeOf({ startMs: NOW_MS - lengthMs, endMs: NOW_MS, maxPoints, nowMs: NOW_MS });

describe("the range of an answer", () => {
  it.each([
    ["an hour", HOUR_MS, 10_000, 360, 10_000],
    ["three hours", 3 * HOUR_MS, 60_000, 180, 60_000],
    ["a day", 24 * HOUR_MS, 60_000, 1_440, 60_000],
    ["a week", 7 * 24 * HOUR_MS, 600_000, 1_008, 600_000],
    ["a moment", 1, 10_000, 1, 10_000],
  ])("%s has the finest steps that are kept and fit", (_, lengthMs, stepMs, points, resolution) => {
    const range = of(lengthMs);
    expect(range).toMatchObject({ stepMs, points });
    expect(range.fromMs % stepMs).toBe(0);
    expect(range.fromMs + points * stepMs).toBeLessThanOrEqual(NOW_MS);
    expect(resolutionOf(range)).toBe(resolution);
  });

  it("has as few points as are asked for, from the coarsest rows that they can be made of", () => {
    const range = of(HOUR_MS, 60);
    expect(range).toMatchObject({ stepMs: 60_000, points: 60 });
    expect(resolutionOf(range)).toBe(60_000);
    expect(of(HOUR_MS, 5_000).points).toBeLessThanOrEqual(MAX_POINTS);
  });

  it("is the last hour where nothing is said", () => {
    const range = rangeOf({ maxPoints: 0, nowMs: NOW_MS });
    expect(range).toEqual(of(HOUR_MS));
  });

  it("ends now where its end is in the future", () => {
    const startMs = NOW_MS - HOUR_MS;
    expect(rangeOf({ startMs, endMs: NOW_MS * 2, maxPoints: 0, nowMs: NOW_MS })).toEqual(
      of(HOUR_MS),
    );
  });

  it.each([
    ["begins in the future", { startMs: NOW_MS + 1 }, "start_time"],
    ["ends where it begins", { startMs: NOW_MS - 5, endMs: NOW_MS - 5 }, "end_time"],
    ["ends before it begins", { startMs: NOW_MS - 5, endMs: NOW_MS - 6 }, "end_time"],
    ["began too long ago", { startMs: NOW_MS - 8 * 24 * HOUR_MS }, "start_time"],
  ])("is refused when it %s", (_, asked, field) => {
    const range = () => rangeOf({ ...asked, maxPoints: 0, nowMs: NOW_MS });
    expect(range).toThrow(expect.objectContaining({ field }));
  });
});

describe("a percentile", () => {
  const BOUNDS = [1, 2, 4];
  it.each([
    ["lies within its bucket", 0.5, [0, 4, 0, 0], 1.5],
    ["begins at zero in the first", 0.5, [4, 0, 0, 0], 0.5],
    ["is the last bound beyond it", 0.99, [1, 0, 0, 99], 4],
    ["skips empty buckets", 0.75, [1, 0, 1, 0], 3],
  ])("%s", (_, fraction, counts, expected) => {
    expect(percentile(fraction, counts, BOUNDS)).toBeCloseTo(expected);
  });

  it("of nothing is not a number", () => {
    expect(percentile(0.5, [0, 0, 0, 0], BOUNDS)).toBeNaN();
    expect(percentile(0.5, [], BOUNDS)).toBeNaN();
  });
});

it("the API names the measures that are kept, in their order", () => {
  const names = Object.keys(Metric).filter((name) => /^[A-Z]/.test(name) && name !== "UNSPECIFIED");
  expect(names.map((name) => name.toLowerCase())).toEqual(MEASURE_NAMES);
});
