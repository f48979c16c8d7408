import { describe, expect, it } from "vitest";
import type { ExposedChanges } from "../../src/metrics/exposed-metrics.ts";
import { expose } from "../../src/metrics/exposition.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import { whole } from "./fixture.ts";
import { prometheusMissing } from "./prometheus.ts";
import { lint } from "./promtool.ts";

const SHOP = { organizationId: "1", organization: "acme", deployment: "shop" };
const OTHER = { organizationId: "1", organization: "acme", deployment: "other" };

const help = "What it says";
type Change = ExposedChanges["changes"][number];
const counter = (name: string, ...changes: Change[]): ExposedChanges => ({
  ...{ name, kind: "counter", help, changes },
});
const gauge = (name: string, ...changes: Change[]): ExposedChanges => ({
  ...{ name, kind: "gauge", help, aggregator: "sum", changes },
});
const histogram = (name: string, buckets: number[], ...changes: Change[]): ExposedChanges => ({
  ...{ name, kind: "histogram", help, buckets, changes },
});
const now = (value: number, ...labels: string[]): Change => ({ labels, value });

function counting() {
  const metrics = new Metrics({ node: "n1", now: () => 1_000_000 });
  const page = (only?: typeof SHOP) => whole(expose(metrics, only));
  return {
    metrics,
    page,
    shop: metrics.deployment(SHOP),
    /** The lines that are not the platform's, without the labels that all have. */
    lines: async (only?: typeof SHOP): Promise<string[]> =>
      (await page(only))
        .split("\n")
        .filter((line) => line !== "" && !/^(# \w+ )?(tessera|process)_/.test(line))
        .filter((line) => !line.startsWith("# HELP"))
        .map((line) => line.replace(/,?(deployment="shop",)?node="n1",organization="acme"/, "")),
    dropped: async (): Promise<string | undefined> =>
      /^tessera_series_dropped_total\{.*metric="other".*\} (\d+)$/m.exec(await page())?.[1],
  };
}

describe("what programs in workers expose", () => {
  it("is added up over workers, also over those that have ended", async () => {
    const { shop, lines, page } = counting();
    const { custom } = shop;
    custom.countExposed("a", counter("done_total", now(3, "lang", "de")));
    custom.countExposed("b", counter("done_total", now(2, "lang", "de"), now(1)));
    custom.countExposed("a", gauge("left", now(3)));
    custom.countExposed("b", gauge("left", now(4)));
    custom.countExposed("a", histogram("took", [1], { ...now(5), counts: [1, 2] }));
    custom.countExposed("b", histogram("took", [1], { ...now(1), counts: [1, 0] }));
    custom.workerEnded("a");
    expect(await lines()).toEqual([
      "# TYPE done_total counter",
      'done_total{deployment="shop",lang="de"} 5',
      "done_total{} 1",
      "# TYPE left gauge",
      "left{} 4",
      "# TYPE took histogram",
      'took_bucket{deployment="shop",le="1"} 2',
      'took_bucket{deployment="shop",le="+Inf"} 4',
      ...["took_sum{} 6", "took_count{} 4"],
    ]);
    if (prometheusMissing === undefined) {
      expect(lint(await page())).toEqual([]);
    }
  });

  it("has room for 2,000 series in a deployment, and says how much more there was", async () => {
    const { shop, metrics, lines, dropped } = counting();
    const changes = Array.from({ length: 2_500 }, (_, n) => now(1, "n", String(n)));
    shop.custom.countExposed("a", counter("done_total", ...changes));
    expect((await lines()).length).toBe(2_001);
    expect(await dropped()).toBe("500");
    shop.custom.countExposed("a", histogram("took", [1], { ...now(5), counts: [1, 2] }));
    expect((await lines()).length).toBe(2_001);
    metrics.deployment(OTHER).custom.countExposed("b", counter("others_total", now(1)));
    expect((await lines()).length).toBe(2_003);
  });

  it("gives the room of a gauge back that no worker has any more", async () => {
    const { shop, lines, dropped } = counting();
    for (let round = 0; round < 5; round += 1) {
      const changes = Array.from({ length: 1_000 }, (_, n) => now(1, "n", `${round} ${n}`));
      shop.custom.countExposed("a", gauge("left", ...changes));
      expect((await lines()).length).toBe(1_001);
      const gone = changes.map(({ labels }) => ({ labels }));
      shop.custom.countExposed("a", gauge("left", ...gone));
    }
    expect(await lines()).toEqual([]);
    expect(await dropped()).toBeUndefined();
  });

  it("cannot stand beside a metric of the service with a sample of the same name", async () => {
    const { shop, lines, dropped } = counting();
    const { custom } = shop;
    custom.declare([
      { name: "took", kind: "histogram", help, labels: [], buckets: [1] },
      { name: "said", kind: "counter", help, labels: [] },
    ]);
    custom.countExposed("a", counter("said", now(1)));
    custom.countExposed("a", gauge("took_count", now(1)));
    custom.countExposed("a", histogram("own", [], { ...now(1), counts: [1] }));
    custom.countExposed("a", gauge("own_sum", now(1)));
    expect((await lines()).filter((line) => line.startsWith("# TYPE"))).toEqual([
      "# TYPE own histogram",
    ]);
    expect(await dropped()).toBe("3");
  });

  it("gives way to a metric that a newer revision declares", async () => {
    const { shop, lines } = counting();
    shop.custom.countExposed("a", counter("said", now(1)));
    shop.custom.declare([{ name: "said", kind: "gauge", help, labels: [] }]);
    expect(await lines()).toEqual([]);
  });

  it("begins anew where a younger worker says that it is something else", async () => {
    const { shop, lines } = counting();
    const { custom } = shop;
    custom.countExposed("old", counter("done", now(5)));
    custom.countExposed("new", gauge("done", now(2)));
    custom.countExposed("old", counter("done", now(1)));
    expect(await lines()).toEqual(["# TYPE done gauge", "done{} 2"]);
  });

  it("ends with the last worker that exposed it, once a newer revision serves", async () => {
    const { shop, lines } = counting();
    const { custom } = shop;
    custom.declare([]);
    custom.countExposed("a", counter("done_total", now(5)));
    custom.countExposed("a", counter("kept_total", now(1)));
    custom.workerEnded("a");
    expect((await lines()).length).toBe(4);
    custom.countExposed("b", counter("done_total", now(1)));
    custom.countExposed("b", counter("kept_total", now(1)));
    custom.declare([]);
    custom.countExposed("c", counter("kept_total", now(1)));
    expect(await lines()).toEqual([
      ...["# TYPE done_total counter", "done_total{} 6"],
      ...["# TYPE kept_total counter", "kept_total{} 3"],
    ]);
    custom.workerEnded("b");
    expect(await lines()).toEqual(["# TYPE kept_total counter", "kept_total{} 3"]);
    custom.end();
    custom.countExposed("c", counter("kept_total", now(1)));
    expect(await lines()).toEqual([]);
  });

  it("is shown untyped where deployments expose different kinds under a name", async () => {
    const { metrics, shop, lines } = counting();
    shop.custom.countExposed("a", counter("done", now(5)));
    metrics.deployment(OTHER).custom.countExposed("b", gauge("done", now(1)));
    expect(await lines()).toContain("# TYPE done untyped");
    expect(await lines(SHOP)).toContain("# TYPE done counter");
  });

  it("is counted where it could not be read", async () => {
    const { shop, page } = counting();
    shop.custom.unread(2);
    expect(await page()).toMatch(/^tessera_metrics_unread_total\{.*\} 2$/m);
  });
});
