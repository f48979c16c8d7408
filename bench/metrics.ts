/**
 * Benchmark of metrics, in processor time of one thread:
 *
 * - one finished call, counted with its code and its duration, compared with
 *   `@prometheus-io/client`;
 * - a `/federate` response with many series, compared with writing as many
 *   existing bytes; and the longest time that it blocked the event loop. Both
 *   are the best of several rounds, which excludes garbage collection for the
 *   others.
 */
import { Counter, Histogram, Registry } from "@prometheus-io/client";
import { METRICS } from "../src/metrics/declarations.ts";
import { AddedLabels } from "../src/metrics/external-labels.ts";
import { ownSamples } from "../src/metrics/families.ts";
import { federate } from "../src/metrics/federate.ts";
import { Metrics } from "../src/metrics/metrics.ts";
import { parseSelectors } from "../src/metrics/selector/list.ts";
import type { Selector } from "../src/metrics/selector/parse.ts";
import { CODES, DEPLOYMENT_LABELS, filled, ORGANIZATION_ID } from "./filled.ts";
import { figure, median, table } from "./table.ts";

export interface MetricsBenchOptions {
  /** Calls that are counted. */
  readonly calls: number;
  /** Approximate number of series in the response. */
  readonly series: number;
  readonly rounds: number;
}

export async function benchMetrics(
  { calls, series, rounds }: MetricsBenchOptions,
  write: (text: string) => void,
): Promise<void> {
  const counting = [
    ["tessera", ownCounting()],
    ["@prometheus-io/client", clientCounting()],
  ] as const;
  const costs = counting.map(([name, count]) => {
    count(calls);
    const rounded = Array.from({ length: rounds }, () => (timed(() => count(calls)) * 1e6) / calls);
    return [name, figure(median(rounded))];
  });
  write(`\n${table(["counting one call", "ns"], costs)}`);
  const metrics = filled(series);
  const rows: string[][] = [];
  for (const selector of SELECTORS) {
    const lines = (await textOf(metrics, selector)).join("").split(/(?<=\n)/);
    const answers: Answer[] = [];
    for (let round = 0; round < 3 * rounds; round += 1) {
      answers.push(await answer(metrics, selector));
    }
    const ms = Math.min(...answers.map((one) => one.ms));
    const writingMs = Math.min(...Array.from({ length: rounds }, () => timed(() => encode(lines))));
    const count = lines.filter((line) => !line.startsWith("#")).length;
    rows.push([
      selector.replaceAll("|", "\\|"),
      String(count),
      figure((answers[0]?.bytes ?? 0) / 1e6, 1),
      figure(ms),
      figure((ms * 1_000) / count, 2),
      figure(writingMs),
      figure(Math.max(...answers.map((one) => one.longestMs))),
    ]);
  }
  const head = [
    "answer to",
    "series",
    "MB",
    "ms",
    "µs/series",
    "the bytes alone, ms",
    "longest turn, ms",
  ];
  write(`\n${table(head, rows)}`);
}

const SELECTORS = [
  '{__name__=~"tessera_.*"}',
  'tessera_requests_total{code="ok"}',
  '{endpoint=~"endpoint-.*(1|3|5)$",deployment!~"x.*"}',
];

/** Counts this many calls of a few endpoints. */
type Count = (calls: number) => void;

function ownCounting(): Count {
  const metrics = new Metrics({ node: "n1", now: Date.now });
  const deployment = metrics.deployment({ organizationId: ORGANIZATION_ID, ...DEPLOYMENT_LABELS });
  return (calls) => {
    for (let call = 0; call < calls; call += 1) {
      deployment.requestFinished(`endpoint-${call & 7}`, {
        protocol: "http",
        code: CODES[call & 3] as string,
        seconds: (call & 255) / 1_000,
      });
    }
  };
}

function clientCounting(): Count {
  const registers = [new Registry()];
  const labels = { ...DEPLOYMENT_LABELS };
  const names = [...Object.keys(labels), "endpoint", "protocol"];
  const { requests, requestDuration } = METRICS;
  const counter = new Counter({ ...requests, labelNames: [...names, "code"], registers });
  const histogram = new Histogram({
    ...requestDuration,
    buckets: [...requestDuration.buckets],
    labelNames: names,
    registers,
  });
  return (calls) => {
    for (let call = 0; call < calls; call += 1) {
      const endpoint = `endpoint-${call & 7}`;
      const protocol = "http";
      counter.inc({ ...labels, endpoint, protocol, code: CODES[call & 3] as string });
      histogram.observe({ ...labels, endpoint, protocol }, (call & 255) / 1_000);
    }
  };
}

interface Answer {
  readonly bytes: number;
  readonly ms: number;
  readonly longestMs: number;
}

async function answer(metrics: Metrics, selector: string): Promise<Answer> {
  let longestMs = 0;
  let isDone = false;
  let turn = process.threadCpuUsage();
  const look = (): void => {
    longestMs = Math.max(longestMs, msSince(turn));
    turn = process.threadCpuUsage();
    if (!isDone) {
      setImmediate(look);
    }
  };
  setImmediate(look);
  const begun = process.threadCpuUsage();
  let bytes = 0;
  for await (const chunk of asked(metrics, await parseSelectors([selector]))) {
    bytes += Buffer.from(chunk).length;
  }
  const ms = msSince(begun);
  await new Promise((resolve) => setImmediate(resolve));
  isDone = true;
  return { bytes, ms, longestMs };
}

async function textOf(metrics: Metrics, selector: string): Promise<string[]> {
  const chunks: string[] = [];
  for await (const chunk of asked(metrics, await parseSelectors([selector]))) {
    chunks.push(chunk);
  }
  return chunks;
}

const added = new AddedLabels();

function asked(metrics: Metrics, selectors: readonly Selector[]): AsyncIterable<string> {
  const sources = [ownSamples(metrics)];
  return federate({
    organizationId: ORGANIZATION_ID,
    selectors,
    sources,
    nowMs: Date.now(),
    added,
  });
}

/** Joins existing lines and encodes them. */
function encode(lines: readonly string[]): number {
  let written = 0;
  let chunk = "";
  for (const line of lines) {
    chunk += line;
    if (chunk.length > 32_768) {
      written += Buffer.from(chunk).length;
      chunk = "";
    }
  }
  return written + Buffer.from(chunk).length;
}

/** Processor time in milliseconds. */
function timed(work: () => void): number {
  const begun = process.threadCpuUsage();
  work();
  return msSince(begun);
}

function msSince(begun: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(begun);
  return (user + system) / 1_000;
}
