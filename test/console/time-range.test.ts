import { describe, expect, it } from "vitest";
import {
  namedRange,
  readMetricsSearch,
} from "../../src/console/app/pages/metrics/metrics-search.ts";
import { latest, totalOf } from "../../src/console/app/ui/line.ts";
import { count, perMinute } from "../../src/console/app/ui/quantity.ts";
import { atLeast, rangeText, rangeWords, readRange } from "../../src/console/app/ui/time-range.ts";

describe("a range of time", () => {
  it.each([
    [{ range: "15m" }, { range: "15m" }],
    [
      { from: 1, to: 2, range: "15m" },
      { from: 1, to: 2 },
    ],
    [{ from: 2, to: 2 }, {}],
    [{ from: -1, to: 2 }, {}],
    [{ from: 0.5, to: 2 }, {}],
    [{ from: 1, to: Number.MAX_SAFE_INTEGER }, {}],
    [{ from: 1 }, {}],
    [{ range: "toString" }, {}],
  ])("is read from the address %j", (given, wanted) => {
    expect(readRange(given)).toEqual(wanted);
  });

  it("is told in words: the last hours, since the deploy, or its two times", () => {
    expect(rangeWords({ range: "6h" }, 0)).toBe("Last 6 h");
    expect(rangeWords({ range: "deploy" }, 0)).toBe("Since the deploy");
    const times = { from: 1_000, to: 2_000 };
    expect(rangeWords(times, 0)).toBe(rangeText({ fromMs: 1_000, toMs: 2_000 }, 0));
    expect(rangeWords({}, 0)).toBeUndefined();
  });

  it("of metrics may be that since the newest deploy, and two times go before it", () => {
    const both = { show: "service", range: "deploy" };
    expect(readMetricsSearch(both)).toEqual(both);
    expect(readMetricsSearch({ range: "deploy", from: 1, to: 2 })).toEqual({ from: 1, to: 2 });
    expect(readRange({ range: "deploy" })).toEqual({});
  });

  it("of metrics since a deploy of which nothing is kept is an hour, also in name", () => {
    expect(namedRange("deploy", 5)).toEqual({ name: "deploy", range: { fromMs: 5 } });
    expect(namedRange("deploy", undefined)).toEqual({ name: "1h", range: 3_600 });
    expect(namedRange("6h", 5)).toEqual({ name: "6h", range: 21_600 });
  });

  it("has a length at least, around its middle", () => {
    expect(atLeast({ fromMs: 100, toMs: 102 }, 10)).toEqual({ fromMs: 96, toMs: 106 });
    expect(atLeast({ fromMs: 100, toMs: 200 }, 10)).toEqual({ fromMs: 100, toMs: 200 });
  });

  it("is told without the day where that is today", () => {
    const noonMs = new Date(2026, 0, 2, 12).getTime();
    const range = { fromMs: noonMs, toMs: noonMs + 61_000 };
    expect(rangeText(range, noonMs)).toBe("12:00:00 – 12:01:01");
    expect(rangeText(range, noonMs + 86_400_000)).toBe("Jan 2, 12:00:00 – 12:01:01");
    expect(rangeText({ ...range, toMs: noonMs + 86_400_000 }, noonMs)).toBe(
      "Jan 2, 12:00:00 – Jan 3, 12:00:00",
    );
  });
});

describe("the numbers of a chart", () => {
  it("are totals, and the last that is known with whether it is that of now", () => {
    expect(totalOf([0.1, null, 0.25], 10)).toBe(4);
    const nowS = Date.now() / 1_000;
    const times = [nowS - 20, nowS - 10, nowS];
    expect(latest([1, 3, null], times, count)).toEqual(["3", "now"]);
    expect(latest([1, 3, null], [10, 20, 30], count)).toEqual(["3", "last"]);
    expect(latest([null], [nowS], count)).toEqual(["none", "last"]);
    expect(perMinute(count)(1 / 60)).toBe("1/min");
  });
});
