import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  Metric,
  MetricsService,
  type QueryMetricsRequest,
  type QueryMetricsResponseSchema,
  Statistic,
} from "../../../gen/tessera/v1/metrics_pb.js";
import { type Answering, answeringCalls } from "./answering.ts";
import { Person } from "./person.ts";

const GAP = Number.NaN;

const ANSWER: MessageInitShape<typeof QueryMetricsResponseSchema> = {
  times: [1_800_000_000, 1_800_000_010],
  step: { seconds: 10n },
  series: [
    { name: "calls", statistic: Statistic.RATE, values: [1.23456, 3] },
    { name: "call_seconds", statistic: Statistic.P95, values: [0.25, GAP] },
    { name: "queue_seconds", statistic: Statistic.P50, values: [GAP, GAP] },
    { name: "worker_memory_bytes", statistic: Statistic.AVERAGE, values: [GAP, 2 ** 20] },
    {
      name: "tokens_total",
      custom: true,
      statistic: Statistic.RATE,
      labels: { model: "sm\u001b[2Jall" },
      values: [12_345, 0],
    },
  ],
};

let answering: Answering;
let person: Person;
let requests: QueryMetricsRequest[];

beforeEach(async () => {
  person = new Person();
  requests = [];
  answering = await answeringCalls((router) => {
    router.service(MetricsService, {
      queryMetrics(req) {
        requests.push(req);
        const leftOut: Record<string, number> =
          req.selectors.length > 0 ? { tokens_total: 20 } : {};
        return { ...ANSWER, leftOut };
      },
    });
  });
});
afterEach(async () => {
  person[Symbol.dispose]();
  await answering[Symbol.asyncDispose]();
});

const run = (...args: string[]) =>
  person.run(["deployment", "metrics", ...args], {
    env: { SERVICE_CLOUD_API_KEY: "tsrp_x", SERVICE_CLOUD_API_ENDPOINT: answering.url },
  });

describe("tessera deployment metrics", () => {
  it("shows the newest value, the average and the peak of each series", async () => {
    expect(await run("sums")).toEqual({
      code: 0,
      stdout: [
        "METRIC                                VALUE       LAST     AVERAGE  PEAK",
        "calls                                 per second  3        2.12     3",
        "call_seconds                          p95         0.25 s   0.25 s   0.25 s",
        "queue_seconds                         p50         -        -        -",
        "worker_memory_bytes                   average     1.0 MiB  1.0 MiB  1.0 MiB",
        'tokens_total{model="sm\\u001b[2Jall"}  per second  0        6172.5   12345',
        "",
      ].join("\n"),
      stderr: "",
    });
    expect(requests).toMatchObject([{ deployment: "sums", metrics: [], selectors: [] }]);
  });

  it("asks for what it is told, and says when there is more", async () => {
    const args = ["--since", "24h", "--metric", "calls", "--metric", "run_seconds"];
    const { code, stderr } = await run("sums", ...args, "--select", "tokens_total");
    expect(code, stderr).toBe(0);
    expect(stderr).toBe(
      "At least 20 more series of tokens_total are not shown: nodes keep 100 of a deployment, and an answer has 100. Select fewer with --select, or give the metric fewer labels.\n",
    );
    const [asked] = requests;
    expect(asked?.metrics).toEqual([Metric.CALLS, Metric.RUN_SECONDS]);
    expect(asked?.selectors).toEqual(["tokens_total"]);
    const agoMs = Date.now() - (asked?.startTime ? timestampMs(asked.startTime) : 0);
    expect(Math.abs(agoMs - 24 * 3_600_000)).toBeLessThan(60_000);
  });

  it("shows all of the organization without a name, as JSON to programs", async () => {
    const { stdout } = await run("--output", "json");
    expect(requests).toMatchObject([{ deployment: "" }]);
    const { times, series } = JSON.parse(stdout);
    expect(times).toEqual(ANSWER.times);
    expect(series[1]).toMatchObject({
      name: "call_seconds",
      statistic: "p95",
      values: [0.25, "NaN"],
    });
  });

  it("refuses a metric that does not exist, and names those that do", async () => {
    const { code, stderr } = await run("sums", "--metric", "speed");
    expect(code).toBe(2);
    expect(stderr).toMatch(/--metric "speed" does not exist: give one of calls, call_errors, /);
    expect(requests).toEqual([]);
  });
});
