import { type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Metric, MetricKind, MetricsService, Statistic } from "../../gen/tessera/v1/metrics_pb.js";
import { digestOf } from "../../src/artifacts/index-file.ts";
import { bearers } from "../../src/client/platform.ts";
import type { MetricManifest } from "../../src/protocol/manifest.ts";
import type { MetricsStorage } from "../../src/storage/metrics/metrics.ts";
import { DATABASES } from "../server/rpc/databases.ts";
import { TestPlatform } from "../server/rpc/platform.ts";
import { type Company, newCompany, newDeployment, newToken } from "../server/rpc/world.ts";

const TICK_MS = 10_000;
const HOUR_MS = 3_600_000;

const CUSTOM = [
  { name: "tokens_total", kind: "counter", labels: ["model"], series: [[["small"], 50]] },
  { series: [], left_out: { tokens_total: 7, score: 2 } },
];

const DECLARED: readonly MetricManifest[] = [
  { name: "tokens_total", kind: "counter", help: "Tokens read.", labels: ["model"] },
  { name: "load_seconds", kind: "histogram", help: "Time to load.", labels: [], buckets: [1] },
  { name: "cache_bytes", kind: "gauge", help: "Size of the cache.", labels: ["model"] },
];

describe.each(DATABASES)("MetricsService on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let deployment: string;
  let metrics: MetricsStorage;
  /** The beginning of an interval that all nodes have stored. */
  let beganAtMs: number;
  const headers: { authorization: string } = { authorization: "" };

  beforeAll(async () => {
    const storage = await open();
    metrics = storage.metrics;
    platform = await TestPlatform.start(storage);
    company = await newCompany(platform);
    deployment = await newDeployment(platform, company);
    const { organizationId } = company;
    const record = await platform.accounts.findDeployment({ organizationId, name: deployment });
    beganAtMs = Math.floor(platform.now() / TICK_MS) * TICK_MS - 3 * TICK_MS;
    const row = { organizationId, beganAtMs, resolutionMs: TICK_MS, recorder: "n1", custom: "" };
    await metrics.putHistory({
      rows: [
        {
          ...row,
          deploymentId: record?.deploymentId ?? "",
          platform: JSON.stringify({ covered_ms: TICK_MS, calls: 30, workers: 2 }),
          custom: JSON.stringify(CUSTOM),
        },
        {
          ...row,
          deploymentId: "",
          platform: JSON.stringify({ covered_ms: TICK_MS, calls: 70, workers: 5 }),
        },
      ],
    });
    Object.assign(headers, (await newToken(platform, company)).headers);
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  /** A deployment with a revision for each of the lists; answers its name. */
  async function declaring(...revisions: (readonly MetricManifest[])[]): Promise<string> {
    const name = await newDeployment(platform, company);
    const { organizationId } = company;
    const record = await platform.accounts.findDeployment({ organizationId, name });
    for (const metrics of revisions) {
      const index = JSON.stringify({ service: { name, endpoints: [], metrics } });
      const made = await platform.storage.hosting.createRevision({
        ...platform.deed(),
        organizationId,
        name,
        deploymentId: record?.deploymentId ?? "",
        artifact: { digest: digestOf(index), index, endpoints: [], files: [] },
        limit: 1_000,
        maxSecrets: 1,
        keptRevisions: 10,
      });
      expect(made.outcome).toBe("created");
    }
    return name;
  }

  const value = (values: readonly number[], times: readonly number[]) =>
    values[times.indexOf(beganAtMs / 1_000)];

  function clients(sessionManager: Http2SessionManager) {
    const interceptors = bearers(headers.authorization.replace("Bearer ", ""));
    const h1 = { baseUrl: platform.origin, httpVersion: "1.1", interceptors } as const;
    const h2 = { baseUrl: platform.origin, sessionManager, interceptors } as const;
    const of = (transport: Transport): Client<typeof MetricsService> =>
      createClient(MetricsService, transport);
    return [
      of(createConnectTransport({ ...h1, useBinaryFormat: false })),
      of(createConnectTransport({ ...h1, useBinaryFormat: true })),
      of(createConnectTransport({ ...h1, useHttpGet: true })),
      of(createGrpcWebTransport(h1)),
      of(createGrpcTransport(h2)),
    ];
  }

  it("answers the same over Connect, gRPC-Web and gRPC, gaps included", async () => {
    const sessionManager = new Http2SessionManager(platform.origin);
    try {
      for (const client of clients(sessionManager)) {
        const answer = await client.queryMetrics({
          deployment,
          metrics: [Metric.CALLS, Metric.WORKERS, Metric.CALL_SECONDS],
          selectors: ["tokens_total"],
        });
        expect(answer.step?.seconds).toBe(10n);
        expect(answer.times).toHaveLength(360);
        expect(answer.times[1]).toBe((answer.times[0] as number) + 10);
        const shown = answer.series.map(({ name, custom, statistic, labels, values }) => [
          name,
          custom,
          Statistic[statistic],
          labels,
          value(values, answer.times),
          values.filter((each) => !Number.isNaN(each)).length,
        ]);
        expect(answer.leftOut).toEqual({ tokens_total: 7 });
        expect(shown).toEqual([
          ["calls", false, "RATE", {}, 3, 1],
          ["workers", false, "AVERAGE", {}, 2, 1],
          ["call_seconds", false, "P50", {}, Number.NaN, 0],
          ["call_seconds", false, "P95", {}, Number.NaN, 0],
          ["call_seconds", false, "P99", {}, Number.NaN, 0],
          ["tokens_total", true, "RATE", { model: "small" }, 5, 1],
        ]);
      }
    } finally {
      sessionManager.abort();
    }
  });

  const rest = (query: string) =>
    platform.rest("GET", `/api/v1/metrics${query}`, undefined, { headers });

  it("lists what the newest revision declares, over Connect, gRPC-Web and gRPC", async () => {
    const name = await declaring(DECLARED.slice(1), DECLARED);
    const sessionManager = new Http2SessionManager(platform.origin);
    try {
      for (const client of clients(sessionManager)) {
        const { metrics } = await client.listMetrics({ deployment: name });
        const shown = metrics.map(({ name, kind, help, unit, labels }) => {
          return [name, MetricKind[kind], help, unit, labels];
        });
        expect(shown).toEqual([
          ["tokens_total", "COUNTER", "Tokens read.", "", ["endpoint", "model"]],
          ["load_seconds", "HISTOGRAM", "Time to load.", "seconds", ["endpoint"]],
          ["cache_bytes", "GAUGE", "Size of the cache.", "bytes", ["model"]],
        ]);
      }
    } finally {
      sessionManager.abort();
    }
  });

  const declared = (name: string, headersOf: typeof headers) =>
    platform.rest("GET", `/api/v1/deployments/${name}/metrics`, undefined, { headers: headersOf });

  it("lists no metrics before the first revision, and of one that declares none", async () => {
    expect((await declared(deployment, headers)).body).toEqual({ metrics: [] });
    expect((await declared(await declaring([]), headers)).body).toEqual({ metrics: [] });
  });

  it("lists nothing of another organization's deployment", async () => {
    const name = await declaring(DECLARED);
    const [metric] = (await declared(name, headers)).body.metrics;
    expect([metric.name, metric.kind]).toEqual(["tokens_total", "counter"]);
    const { headers: others } = await newToken(platform, await newCompany(platform));
    expect((await declared(name, others)).outcome).toBe("DEPLOYMENT_NOT_FOUND");
  });

  it("answers REST with names in lower case, and gaps as NaN", async () => {
    const { status, body } = await rest(`?deployment=${deployment}&metrics=calls&metrics=workers`);
    expect(status).toBe(200);
    const [calls, workers] = body.series;
    expect([calls.name, calls.statistic, workers.statistic]).toEqual(["calls", "rate", "average"]);
    expect(value(calls.values, body.times)).toBe(3);
    expect(calls.values[0]).toBe("NaN");
    expect(body.step).toBe("10s");
  });

  it("answers for the whole organization where no deployment is named", async () => {
    const { body } = await rest("?metrics=calls");
    expect(value(body.series[0].values, body.times)).toBe(7);
  });

  it("has all metrics of the platform where none is named, and as many points as asked for", async () => {
    const { body } = await rest("?max_points=12");
    const names = new Set(body.series.map(({ name }: { name: string }) => name));
    expect(names.size).toBe(Object.keys(Metric).filter((key) => /^[A-Z]/.test(key)).length - 1);
    expect(body.times).toHaveLength(12);
    expect(body.step).toBe("300s");
  });

  const at = (ms: number) => encodeURIComponent(new Date(ms).toISOString());

  it.each([
    ["a metric that does not exist", () => "?metrics=speed", "metrics"],
    ["an invalid selector", () => `?deployment=${deployment}&selectors=%7Ba`, "selectors"],
    ["a selector without a deployment", () => "?selectors=tokens_total", "selectors"],
    ["a range in the future", () => `?start_time=${at(Date.now() + HOUR_MS)}`, "start_time"],
    [
      "a range that is not kept",
      () => `?start_time=${at(Date.now() - 192 * HOUR_MS)}`,
      "start_time",
    ],
    [
      "a range that ends before it begins",
      () => `?start_time=${at(Date.now() - HOUR_MS)}&end_time=${at(Date.now() - 2 * HOUR_MS)}`,
      "end_time",
    ],
    ["too many points", () => "?max_points=1441", "max_points"],
  ])("refuses %s, and names the field", async (_, query, field) => {
    const { status, body } = await rest(query());
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain("REQUEST_INVALID");
    expect(JSON.stringify(body)).toContain(field);
  });

  it("does not know the deployment of another organization", async () => {
    const other = await newCompany(platform);
    const theirs = await newDeployment(platform, other);
    expect((await rest(`?deployment=${theirs}`)).status).toBe(404);
    const { headers } = await newToken(platform, other);
    const options = { headers };
    const none = await platform.rest("GET", "/api/v1/metrics?metrics=calls", undefined, options);
    expect(value(none.body.series[0].values, none.body.times)).toBe("NaN");
  });
});
