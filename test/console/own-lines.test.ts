import { describe, expect, it } from "vitest";
import type { MetricSeriesJson, ServiceMetricJson } from "../../gen/tessera/v1/metrics_pb.js";
import { ownCharts } from "../../src/console/app/pages/metrics/own-lines.ts";
import { formatOf, perSecond } from "../../src/console/app/ui/quantity.ts";

const TOKENS: ServiceMetricJson = {
  name: "tokens_total",
  kind: "METRIC_KIND_COUNTER",
  help: "Tokens",
};

function rate(
  labels: Readonly<Record<string, string>>,
  ...values: (number | "NaN")[]
): MetricSeriesJson {
  return { name: "tokens_total", custom: true, statistic: "STATISTIC_RATE", labels, values };
}

const bare = (text: string) => text.replaceAll(/[\u2068\u2069]/g, "");

describe("the charts of a service's own metrics", () => {
  it("have a line for each label set, the highest first, and their colours by name", () => {
    const series = [5, 1, 8, 3, 7, 2, 9, 6].map((value) => {
      return rate({ endpoint: "read", model: `m${value}` }, value, "NaN");
    });
    const [chart] = ownCharts([TOKENS], { series, leftOut: { tokens_total: 4 } });
    const names = chart?.lines.map(({ name }) => bare(name));
    expect(names).toEqual([9, 8, 7, 6, 5, 3, 2, 1].map((model) => `model=m${model}`));
    expect(chart?.lines[0]?.values).toEqual([9, null]);
    const looks = chart?.lines.map(({ colour, dashes }) => `${colour} ${dashes}`) ?? [];
    expect(looks.slice(0, 6)).toEqual([6, 5, 4, 3, 2, 1].map((line) => `--line-${line} 0`));
    expect(looks.slice(6)).toEqual(["--line-2 1", "--line-1 1"]);
    expect(chart?.leftOut).toBe(4);
  });

  it("have no lines where nothing was counted, and one where there is one label set", () => {
    expect(ownCharts([TOKENS], {})).toMatchObject([{ name: "tokens_total", lines: [] }]);
    const [chart] = ownCharts([TOKENS], { series: [rate({ endpoint: "read" }, 1)] });
    expect(chart?.lines.map(({ name }) => name)).toEqual(["increase"]);
  });

  it("tell of counters how much there was in the whole time", () => {
    const series = [rate({ endpoint: "read" }, 1.5, "NaN", 2)];
    const [chart] = ownCharts([TOKENS], { series, step: "10s" });
    expect(chart?.lines.map(({ summary }) => summary)).toEqual(["35 in total"]);
    expect(chart?.numbers).toEqual([["35", "in total"]]);
  });

  it("say in the legend what the lines are sorted by", () => {
    const cases = [
      ["METRIC_KIND_COUNTER", "STATISTIC_RATE", ["40 in total", "20 in total"]],
      ["METRIC_KIND_GAUGE", "STATISTIC_AVERAGE", ["2 on average", "1 on average"]],
      ["METRIC_KIND_HISTOGRAM", "STATISTIC_P95", ["2 p95", "1 p95"]],
    ] as const;
    for (const [kind, statistic, summaries] of cases) {
      const series = [
        [0, 2],
        [1, 3],
      ].map((values, index): MetricSeriesJson => {
        return { name: "size", statistic, labels: { part: `${index}` }, values, whole: index + 1 };
      });
      const [chart] = ownCharts([{ name: "size", kind }], { series, step: "10s" });
      expect(chart?.lines.map(({ summary }) => summary)).toEqual(summaries);
      expect(chart?.lines.map(({ name }) => bare(name))).toEqual(["part=1", "part=0"]);
    }
  });

  it("show percentiles of one label set, and the 95th of several", () => {
    const score = (endpoint: string): MetricSeriesJson[] =>
      (["STATISTIC_P50", "STATISTIC_P95", "STATISTIC_P99"] as const).map((statistic, index) => {
        return {
          name: "score",
          statistic,
          labels: { endpoint },
          values: [index],
          whole: index + 5,
        };
      });
    const declared: ServiceMetricJson[] = [{ name: "score", kind: "METRIC_KIND_HISTOGRAM" }];
    const [one] = ownCharts(declared, { series: score("read") });
    expect(one?.lines.map(({ values }) => values)).toEqual([[0], [1], [2]]);
    expect(one?.numbers.map(([value, words]) => `${value} ${words}`)).toEqual([
      ...["5 p50", "6 p95"],
    ]);
    expect(one?.lines.map(({ summary }) => summary)).toEqual(["5", "6", "7"]);
    const [several] = ownCharts(declared, { series: [...score("read"), ...score("write")] });
    expect(several?.lines.map(({ name, values }) => [bare(name), values])).toEqual([
      ["endpoint=read", [1]],
      ["endpoint=write", [1]],
    ]);
    expect(several?.detail).toBe("Histogram: p95");
    expect(several?.numbers).toEqual([]);
  });

  it("continue over a change of the metric, and tell what the newest revision does not declare", () => {
    const series = [rate({}, 1, "NaN", 3), rate({}, "NaN", 2, "NaN")];
    const [chart] = ownCharts([TOKENS], { series });
    expect(chart?.lines.map(({ values }) => values)).toEqual([[1, 2, 3]]);
    const [earlier] = ownCharts([], { series });
    expect(earlier).toMatchObject({ isDeclared: false, help: "" });
    expect(earlier?.detail).toBe("Counter: increase per minute");
  });
});

it("tells metrics that nobody declared with the unit that ends their names", () => {
  const series = ["time_seconds", "read_bytes_total", "things"].map((name): MetricSeriesJson => {
    return { name, statistic: "STATISTIC_AVERAGE", values: [1_024] };
  });
  expect(ownCharts([], { series }).map(({ detail, format }) => [detail, format(1_024)])).toEqual([
    ["Gauge in seconds", "1.02k s"],
    ["Gauge in bytes", "1 KiB"],
    ["Gauge", "1.02k"],
  ]);
});

it.each([
  ["", 1_234_567, "1.23M"],
  ["", -2_500, "-2.5k"],
  ["seconds", 0.25, "250 ms"],
  ["seconds", 90, "90 s"],
  ["bytes", 1_572_864, "1.5 MiB"],
  ["ratio", 0.875, "87.5 %"],
  ["celsius", 21.5, "21.5 °C"],
])("a value in %s is written with its unit", (unit, value, text) => {
  expect(formatOf(unit)(value)).toBe(text);
  expect(perSecond(formatOf(unit))(value)).toBe(`${text}/s`);
});
