import { describe, expect, it } from "vitest";
import { parseExposition } from "../../../src/pool/exposition/parse.ts";
import { threadTimer } from "../../thread-time.ts";

/** The metrics of a text: each series by its labels, with its value and counts. */
function read(...lines: string[]) {
  const { metrics, leftOut } = parseExposition(lines.join("\n"));
  const series = metrics.flatMap(({ name, kind, changes }) =>
    changes.map(({ labels, value, counts }) => [name, kind, labels.join(","), value, counts]),
  );
  return { series, leftOut, metrics };
}

describe("the text format of Prometheus", () => {
  it("is read with its types, help, labels and escapes", () => {
    const { series, metrics, leftOut } = read(
      "# HELP words_total Words \\\\ read\\nso far",
      "# TYPE words_total counter",
      'words_total{lang="de",said="a \\"b\\"\\\\\\n}",} 3 1700000000000',
      '\twords_total { lang = "en" , empty="" } 1e3',
      "",
      "# any comment",
      "bare 4",
      "up_down{} -.5\r",
      "# TYPE of:rule untyped",
      "of:rule +3.",
    );
    expect(series).toEqual([
      ["words_total", "counter", 'lang,de,said,a "b"\\\n}', 3, undefined],
      ["words_total", "counter", "lang,en", 1000, undefined],
      ["bare", "gauge", "", 4, undefined],
      ["up_down", "gauge", "", -0.5, undefined],
      ["of:rule", "gauge", "", 3, undefined],
    ]);
    expect(metrics[0]?.help).toBe("Words \\ read\nso far");
    expect(leftOut).toBeUndefined();
  });

  it("has histograms, whose buckets become counts of their own, in any order", () => {
    const { metrics } = read(
      "# TYPE took histogram",
      "took_sum 7.5",
      'took_bucket{le="+Inf"} 5',
      'took_bucket{le="0.5"} 1',
      'took_bucket{le="1"} 3',
      "took_count 5",
    );
    expect(metrics).toEqual([
      {
        ...{ name: "took", kind: "histogram", help: "", buckets: [0.5, 1] },
        changes: [{ labels: [], value: 7.5, counts: [1, 2, 2] }],
      },
    ]);
  });

  it("has summaries, of which the sum and the count are read", () => {
    const { metrics } = read(
      "# TYPE took summary",
      'took{quantile="0.5"} NaN',
      "took_sum 7.5",
      "took_count 5",
    );
    expect(metrics).toEqual([
      {
        ...{ name: "took", kind: "histogram", help: "", buckets: [] },
        changes: [{ labels: [], value: 7.5, counts: [5] }],
      },
    ]);
  });

  it("is read as OpenMetrics writes it, with exemplars and types without _total", () => {
    const { series } = read(
      "# TYPE words counter",
      "# HELP words Words",
      'words_total{a="# 1"} 3.0 # {trace_id="a"} 1.0 1700000000.5',
      "words_created 1.7e9",
      "# TYPE build info",
      'build_info{version="1"} 1',
      "# EOF",
    );
    expect(series).toEqual([
      ["words_total", "counter", "a,# 1", 3, undefined],
      ["build_info", "gauge", "version,1", 1, undefined],
    ]);
  });

  it("leaves out when series were made, and what libraries say of their process", () => {
    const { series, leftOut } = read(
      "# TYPE words_total counter",
      "words_total 1",
      "# TYPE words_created gauge",
      "words_created 1.7e9",
      "# TYPE was_created gauge",
      "was_created 5",
      "process_cpu_seconds_total 1",
      'python_gc_objects_collected_total{generation="0"} 9',
      'python_info{version="3"} 1',
    );
    expect(series.map(([name]) => name)).toEqual(["words_total", "was_created"]);
    expect(leftOut).toBeUndefined();
  });

  it("keeps labels apart from those of the platform", () => {
    const { series } = read(
      'jobs{job="a",node="b",organization="c",endpoint="d",deployment="e"} 1',
    );
    expect(series[0]?.[2]).toBe(
      "endpoint,d,exported_deployment,e,exported_job,a,exported_node,b,exported_organization,c",
    );
  });

  it.each([
    ["a name of the platform", "tessera_requests_total 1"],
    ["a name of the platform", "scrape_samples_scraped 1"],
    ["a name of the platform", "up 1"],
    ["a name of the platform", `${"x".repeat(201)} 1`],
    ["no finite number", "x NaN"],
    ["no finite number", "x +Inf"],
    ["a series twice", "x 1", 'y{a="1",b="2"} 1', 'y{b="2",a="1"} 2'],
    ["not one of its own", 'x{le="1"} 1'],
    ["not one of its own", 'x{__name__="tessera_x"} 1'],
    ["not one of its own", 'x{a="1",a="2"} 1'],
    ["not one of its own", 'x{job="1",exported_job="2"} 1'],
    ["too long", `x{a="${"v".repeat(501)}"} 1`],
    ["too long", 'x{a="\ud800"} 1'],
    ["more than 20 labels", `x{${Array.from({ length: 21 }, (_, n) => `l${n}="1"`).join(",")}} 1`],
    ["below zero", "# TYPE x counter", "x -1"],
    ["whole numbers", "# TYPE x histogram", 'x_bucket{le="1"} 2', "x_count 1", "x_sum 1"],
    ["whole numbers", "# TYPE x histogram", 'x_bucket{le="1"} 0.5', "x_count 1", "x_sum 1"],
    ["whole numbers", "# TYPE x histogram", "x_sum 1"],
    ["no finite number", "# TYPE x histogram", "x_count 1", "x_sum NaN"],
    [
      "different buckets",
      ...["# TYPE x histogram", 'x_bucket{a="1",le="1"} 1', 'x_count{a="1"} 1'],
      ...['x_bucket{a="2",le="2"} 1', 'x_count{a="2"} 1'],
    ],
    [
      "more than 100 buckets",
      "# TYPE x histogram",
      ...Array.from({ length: 101 }, (_, n) => `x_bucket{le="${n}"} 1`),
    ],
  ])("leaves out what has %s, and says so", (reason, ...lines) => {
    const { series, leftOut } = read(...lines, "good 1");
    expect(leftOut).toContain(reason);
    expect(series.filter(([name]) => name === "good")).toHaveLength(1);
    expect(series.some(([name]) => String(name).startsWith("tessera_"))).toBe(false);
  });

  it.each([
    ["line 1 has no name", "<!doctype html>"],
    ["line 2 has a value that is no number", "a 1", "b one"],
    ["line 1 has a value that is no number", "a"],
    ["line 1 has a value that is no number", "a 0x10"],
    ["line 1 has a value that is no number", "a 1 2 3"],
    ["line 1 has a value that is no number", "a 1 later"],
    ["without a value in quotes", "a{b=1} 1"],
    ["without a value in quotes", "a{b} 1"],
    ["that does not end", 'a{b="1} 1'],
    ["that does not end", 'a{b="1\\"} 1'],
    ["do not end with }", 'a{b="1" c="2"} 1'],
    ["has no name", 'a{b="1",,} 1'],
    ["has no name", 'a{"b.c"="1"} 1'],
    ["without its bound", "# TYPE a histogram", "a_bucket 1"],
  ])("is refused as a whole: %s", (reason, ...lines) => {
    expect(() => read(...lines)).toThrow(reason);
  });

  it("is read up to 10,000 samples", () => {
    const { series, leftOut } = read(...Array.from({ length: 20_000 }, (_, n) => `a${n} 1`));
    expect(series).toHaveLength(10_000);
    expect(leftOut).toBe('"a10000" has 10000 samples before it, which are the most that are read');
  });

  it("reads the most that is taken in little time, whatever stands in it", () => {
    const most = 1024 ** 2;
    const texts = [
      `x{a="${"\\".repeat(most)}"} 1`,
      `x{a="${'\\"'.repeat(most / 2)}"} 1`,
      `# HELP ${"a ".repeat(most / 2)}`,
      `#${" ".repeat(most)}x`,
      `# a ${"b".repeat(most)} x\rx`,
      `x ${" ".repeat(most)}1 #`,
      "{".repeat(most),
      `x{${'a="1",'.repeat(most / 6)}} 1`,
      "x 1\n".repeat(most / 4),
      `x ${"1".repeat(most)}e`,
    ];
    for (const text of texts) {
      const spentMs = threadTimer();
      try {
        parseExposition(text);
      } catch {
        // Most of them are refused.
      }
      expect(spentMs()).toBeLessThan(1_000);
    }
  });
});
