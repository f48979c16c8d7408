import { afterAll, beforeAll, expect, it } from "vitest";
import type { HistoryAnswer, HistoryQuery } from "../../../src/metrics/history/history.ts";
import { PrometheusHistory } from "../../../src/metrics/history/prometheus.ts";
import { parseSelector } from "../../../src/metrics/selector/parse.ts";
import { Upstream, UpstreamError } from "../../../src/metrics/upstream.ts";
import { Page } from "../page.ts";
import { RealPrometheus } from "../prometheus.ts";
import { valuesOf } from "./node.ts";

const resources = new AsyncDisposableStack();
let history: PrometheusHistory;

/** Two nodes with the same deployment, and another organization; every scrape finds more. */
function pageAt(scrape: number): string {
  const lines: string[] = [];
  for (const node of ["n1", "n2"]) {
    const of = `organization="acme",deployment="digits",node="${node}"`;
    for (const [code, count] of [
      ["ok", 3],
      ["internal", 1],
    ] as const) {
      lines.push(`tessera_requests_total{${of},endpoint="read",code="${code}"} ${scrape * count}`);
    }
    lines.push(`tessera_workers{${of}} 2`, `tessera_queue_length{${of},endpoint="train"} 7`);
    lines.push(`models_loaded{${of}} 3`);
    lines.push(`tokens_total{${of},endpoint="read",model="small"} ${scrape * 10}`);
    for (const [bound, upTo] of [
      ["1", 1],
      ["2", 3],
      ["+Inf", 4],
    ] as const) {
      lines.push(`score_bucket{${of},endpoint="read",le="${bound}"} ${scrape * upTo}`);
    }
    const train = `${of},endpoint="train"`;
    lines.push(`tessera_tasks_finished_total{${train},outcome="success"} ${scrape * 6}`);
    lines.push(`tessera_tasks_finished_total{${train},outcome="expired"} ${scrape * 3}`);
    for (const [bound, upTo] of [
      ["0.01", 0],
      ["5", 2],
      ["+Inf", 2],
    ] as const) {
      lines.push(`tessera_task_run_seconds_bucket{${train},le="${bound}"} ${scrape * upTo}`);
    }
    lines.push(`score_sum{${of},endpoint="read"} ${scrape}`);
    lines.push(`score_count{${of},endpoint="read"} ${scrape * 4}`);
  }
  for (let index = 0; index < 103; index += 1) {
    lines.push(`wide_total{organization="acme",deployment="wide",model="${index}"} ${scrape}`);
  }
  lines.push('tessera_workers{organization="globex",deployment="digits",node="n1"} 100');
  lines.push('secrets_total{organization="globex",deployment="digits",node="n1"} 1');
  return `${lines.join("\n")}\n`;
}

beforeAll(async () => {
  let scrape = 0;
  const page = await Page.serve((_, res) => {
    scrape += 1;
    res.setHeader("content-type", "text/plain; version=0.0.4");
    res.end(pageAt(scrape));
  });
  resources.use(page);
  const targets = [{ targets: [page.address] }];
  const prometheus = resources.use(
    await RealPrometheus.start({
      scrapes: [{ job_name: "page", honor_labels: true, static_configs: targets }],
    }),
  );
  await prometheus.until(
    'min(count_over_time(tessera_workers{organization="acme"}[1m]))',
    (count) => Number(count) >= 3,
  );
  history = new PrometheusHistory(new Upstream(prometheus.url));
});
afterAll(() => resources.disposeAsync());

function read(more: Partial<HistoryQuery> = {}): Promise<HistoryAnswer> {
  // Soon, so that the newest point has all that was scraped.
  const nowMs = Date.now() + 20_000;
  return history.read({
    organizationId: "o1",
    organization: "acme",
    deployment: { deploymentId: "d1", name: "digits" },
    measures: [],
    selectors: [],
    range: { startMs: nowMs - 3_600_000, maxPoints: 0, nowMs },
    signal: new AbortController().signal,
    ...more,
  });
}

const last = (answer: HistoryAnswer, ...of: [string, "p50"?]) => valuesOf(answer, ...of)?.at(-1);

it("answers the platform's measures over all nodes, and gaps where it knows nothing", async () => {
  const answer = await read({
    measures: ["calls", "call_server_errors", "call_seconds", "workers", "tasks_queued"],
  });
  expect(answer).toMatchObject({ stepMs: 10_000, points: 360, truncated: false });
  expect(last(answer, "calls")).toBeGreaterThan(0);
  const errors = last(answer, "call_server_errors") ?? 0;
  expect((last(answer, "calls") ?? 0) / errors).toBeCloseTo(4);
  expect(last(answer, "workers")).toBe(4);
  expect(last(answer, "tasks_queued")).toBe(7);
  expect(last(answer, "call_seconds", "p50")).toBeNaN();
  expect(valuesOf(answer, "workers")?.[0]).toBeNaN();
});

it("answers for the organization together, and never for another", async () => {
  const answer = await read({ measures: ["workers"], deployment: undefined });
  expect(last(answer, "workers")).toBe(4);
  const selectors = [parseSelector('{organization="globex",__name__=~".+"}')];
  expect((await read({ selectors })).series).toEqual([]);
});

it("counts the tasks of the organization by deployment and endpoint", async () => {
  const { tally, fromMs, toMs } = await history.tasks({
    organizationId: "o1",
    organization: "acme",
    deployments: [{ deploymentId: "d1", name: "digits" }],
    windowMs: 3_600_000,
    nowMs: Date.now(),
  });
  expect(toMs - fromMs).toBe(3_600_000);
  const [[deploymentId, endpoint, sums] = []] = [...tally.entries()];
  expect([deploymentId, endpoint, tally.size]).toEqual(["d1", "train", 1]);
  expect(sums?.succeeded).toBeGreaterThan(0);
  expect((sums?.succeeded ?? 0) / (sums?.failed ?? 0)).toBeCloseTo(2, 0);
  const [first, second, , , , fifth] = sums?.runCounts ?? [];
  expect([first, second]).toEqual([0, 0]);
  expect(fifth).toBeGreaterThan(0);
  expect(sums?.queueCounts).toEqual([]);
});

it("answers the metrics of a service by their kinds", async () => {
  const { series } = await read({ selectors: [parseSelector('{__name__=~".+"}')] });
  const shown = series.map(({ name, custom, statistic, labels }) => [
    name,
    custom,
    statistic,
    labels,
  ]);
  expect(shown).toEqual([
    ["models_loaded", true, "average", {}],
    ["score", true, "p50", { endpoint: "read" }],
    ["score", true, "p95", { endpoint: "read" }],
    ["score", true, "p99", { endpoint: "read" }],
    ["tokens_total", true, "rate", { endpoint: "read", model: "small" }],
  ]);
  const newest = series.map(({ values }) => values.at(-1) ?? 0);
  expect(newest[0]).toBe(6);
  expect(newest[1]).toBeCloseTo(1.5);
  expect(newest[4]).toBeGreaterThan(0);
  const chosen = await read({ selectors: [parseSelector('tokens_total{model="large"}')] });
  expect(chosen.series).toEqual([]);
});

it("says how many series of a service an answer has no room for", async () => {
  const selectors = [parseSelector("wide_total")];
  const answer = await read({ selectors, deployment: { deploymentId: "d2", name: "wide" } });
  expect(answer.series).toHaveLength(100);
  expect(answer.truncated).toBe(true);
  expect([...answer.leftOut]).toEqual([["wide_total", 3]]);
});

it.each([
  ["cannot be reached", () => "http://127.0.0.1:9", /cannot be reached/],
  ["answers an error", (page: Page) => `http://${page.address}/500`, /status 500/],
  ["answers no JSON", (page: Page) => `http://${page.address}/text`, /something else than JSON/],
  ["answers too much", (page: Page) => `http://${page.address}/endless`, /too much to answer/],
])("says so when that Prometheus %s", async (_, addressOf, message) => {
  await using page = await Page.serve((req, res) => {
    if (req.url?.startsWith("/endless")) {
      const more = (): void => {
        while (!res.destroyed && res.write("x".repeat(65_536))) {}
      };
      res.on("drain", more);
      more();
    } else {
      res.statusCode = req.url?.startsWith("/500") ? 500 : 200;
      res.end("no JSON");
    }
  });
  const failing = new PrometheusHistory(new Upstream(addressOf(page)));
  const nowMs = Date.now();
  const asked = failing.read({
    organizationId: "o1",
    organization: "acme",
    deployment: undefined,
    measures: ["calls"],
    selectors: [],
    range: { maxPoints: 0, nowMs },
    signal: new AbortController().signal,
  });
  await expect(asked).rejects.toThrow(UpstreamError);
  await expect(asked).rejects.toThrow(message);
});
