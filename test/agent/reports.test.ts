import { describe, expect, it } from "vitest";
import { ReportStream } from "../../src/agent/reports.ts";
import { readExposed } from "../../src/pool/checks/check-metrics.ts";
import { isFields } from "../../src/pool/checks/untrusted.ts";
import type { ExposedMetric } from "../../src/protocol/messages.ts";

const help = "What it says";
const done = (value: number, ...labels: string[]): ExposedMetric => ({
  ...{ name: "done_total", kind: "counter", help, changes: [{ labels, value }] },
});
const left = (value?: number): ExposedMetric => {
  const change = { labels: [], ...(value !== undefined && { value }) };
  return { ...{ name: "left", kind: "gauge", help, aggregator: "max", changes: [change] } };
};
const took = (value: number, counts: number[], buckets = [1]): ExposedMetric => ({
  ...{ name: "took", kind: "histogram", help, buckets, changes: [{ labels: [], value, counts }] },
});

/** What the next report of metrics says, as a node reads it. */
function reported(reports: ReportStream) {
  const text = reports.metrics.take();
  const fields: unknown = text === "" ? undefined : JSON.parse(text);
  return isFields(fields) ? readExposed(fields) : undefined;
}

describe("what programs of a joined worker expose", () => {
  it("waits for its report as one change of each series", () => {
    using reports = new ReportStream();
    const { metrics } = reports;
    for (const exposed of [done(1), done(2), done(5, "lang", "de"), left(3), left(4)]) {
      metrics.countExposed("a", exposed);
    }
    metrics.countExposed("a", took(1, [1, 0]));
    metrics.countExposed("a", took(5, [0, 2]));
    metrics.unread(2);
    expect(reported(reports)).toEqual({
      unread: 2,
      exposed: [
        {
          ...done(0),
          changes: [
            { labels: [], value: 3 },
            { labels: ["lang", "de"], value: 5 },
          ],
        },
        left(4),
        took(6, [1, 2]),
      ],
    });
    expect(reported(reports)).toBeUndefined();
    metrics.countExposed("a", left());
    expect(reported(reports)?.exposed).toEqual([left()]);
  });

  it("begins anew where it has other buckets", () => {
    using reports = new ReportStream();
    reports.metrics.countExposed("a", took(1, [1, 0]));
    reports.metrics.countExposed("a", took(5, [0, 0, 2], [1, 2]));
    expect(reported(reports)?.exposed).toEqual([took(5, [0, 0, 2], [1, 2])]);
  });

  it("is sent in reports of a bounded size, and whole", () => {
    using reports = new ReportStream();
    const labels = ["said", "x".repeat(500)];
    for (let number = 0; number < 1_000; number += 1) {
      reports.metrics.countExposed("a", done(1, "n", String(number), ...labels));
    }
    let series = 0;
    for (let round = 0; reports.metrics.size > 0; round += 1) {
      const [metric] = reported(reports)?.exposed ?? [];
      expect(metric?.changes.length).toBeLessThanOrEqual(200);
      series += metric?.changes.length ?? 0;
      expect(round).toBeLessThan(20);
    }
    expect(series).toBe(1_000);
  });

  it.each([
    ["a name of the platform", { ...done(1), name: "tessera_requests_total" }],
    ["a name that is none", { ...done(1), name: 'x"} 1\ny' }],
    ["no kind", { ...done(1), kind: "summary" }],
    ["a help that is too long", { ...done(1), help: "x".repeat(1_001) }],
    ["a counter that goes down", done(-1)],
    ["a number that is none", { ...done(1), changes: [{ labels: [], value: null }] }],
    ["a label without a value", done(1, "lang")],
    ["a label of the platform", done(1, "deployment", "other")],
    ["a label that is none", done(1, 'a="b"', "c")],
    ["labels that are not in order", done(1, "b", "1", "a", "2")],
    ["a label twice", done(1, "a", "1", "a", "2")],
    ["a value that is too long", done(1, "a", "x".repeat(501))],
    ["an aggregator that is none", { ...left(1), aggregator: "last" }],
    ["counts of other buckets", took(1, [1])],
    ["counts that go down", took(1, [-1, 2])],
    ["buckets that do not rise", took(1, [1, 1, 1], [2, 1])],
  ])("is refused by the node with %s", (_what, forged) => {
    expect(readExposed({ exposed: [forged] })).toBeUndefined();
    expect(readExposed({ exposed: [done(1)], unread: -1 })).toBeUndefined();
    expect(readExposed({ exposed: [done(1)] })).toBeDefined();
  });
});
