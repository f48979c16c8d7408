/** The tasks of an organization, from the counters and histograms of a Prometheus. */
import { METRICS } from "../declarations.ts";
import { equals, NAME_LABEL } from "../selector/parse.ts";
import { writeSelector } from "../selector/write.ts";
import { type Upstream, UpstreamError } from "../upstream.ts";
import type { TasksAnswer, TasksQuery } from "./history.ts";
import { COUNTED_AS, NO_TASKS, type TaskSums, TaskTally } from "./task-tally.ts";

/** Endpoints that are told apart in one answer. */
const MAX_ANSWERED_ENDPOINTS = 5_000;

/** Time that the Prometheus has for one query. */
const TASKS_QUERY_TIMEOUT_MS = 30_000;

interface Row {
  readonly metric: { readonly [label: string]: string };
  readonly value: readonly [seconds: number, value: string];
}

export async function prometheusTasks(
  upstream: Pick<Upstream, "ask">,
  { organization, deployments, windowMs, nowMs }: TasksQuery,
): Promise<TasksAnswer> {
  const ask = async (metric: string, by: string): Promise<readonly Row[]> => {
    const matchers = [equals(NAME_LABEL, metric), equals("organization", organization)];
    const increase = `increase(${writeSelector({ matchers })}[${windowMs}ms])`;
    const data = await upstream.ask(
      "/api/v1/query",
      { query: `sum by (deployment, endpoint, ${by}) (${increase})`, time: String(nowMs / 1_000) },
      AbortSignal.timeout(TASKS_QUERY_TIMEOUT_MS),
    );
    const { result } = (data ?? {}) as { readonly result?: readonly Row[] };
    if (!Array.isArray(result)) {
      throw new UpstreamError("the Prometheus behind this platform answered without a result");
    }
    return result;
  };
  const [finished, queued, run] = await Promise.all([
    ask(METRICS.tasksFinished.name, "outcome"),
    ask(`${METRICS.queueWait.name}_bucket`, "le"),
    ask(`${METRICS.runTime.name}_bucket`, "le"),
  ]);
  const tally = new TaskTally(MAX_ANSWERED_ENDPOINTS);
  const ids = new Map(deployments.map(({ name, deploymentId }) => [name, deploymentId]));
  const add = ({ deployment = "", endpoint = "" }: Row["metric"], sums: Partial<TaskSums>) => {
    const deploymentId = ids.get(deployment);
    if (deploymentId !== undefined) {
      tally.add(deploymentId, endpoint, { ...NO_TASKS, ...sums });
    }
  };
  for (const { metric, value } of finished) {
    const field = COUNTED_AS[metric.outcome ?? ""];
    if (field !== undefined) {
      // What happened between two scrapes is extrapolated, to fractions.
      add(metric, { [field]: Math.round(Number(value[1])) });
    }
  }
  for (const [rows, field, bounds] of [
    [queued, "queueCounts", METRICS.queueWait.buckets],
    [run, "runCounts", METRICS.runTime.buckets],
  ] as const) {
    for (const group of histograms(rows)) {
      add(group[0]?.metric ?? {}, { [field]: countsOf(group, bounds) });
    }
  }
  return { fromMs: nowMs - windowMs, toMs: nowMs, tally };
}

/** The buckets of each endpoint. */
function histograms(rows: readonly Row[]): Iterable<readonly Row[]> {
  const keyOf = ({ metric }: Row) => JSON.stringify([metric.deployment, metric.endpoint]);
  return Map.groupBy(rows, keyOf).values();
}

/** Counts of each bucket; those of a Prometheus also have what is in the buckets below. */
function countsOf(rows: readonly Row[], bounds: readonly number[]): readonly number[] {
  const upTo = new Map(
    rows.map(({ metric: { le = "" }, value }) => [
      le === "+Inf" ? Number.POSITIVE_INFINITY : Number.parseFloat(le),
      Number(value[1]),
    ]),
  );
  let below = 0;
  return [...bounds, Number.POSITIVE_INFINITY].map((bound) => {
    const all = Math.max(below, upTo.get(bound) ?? below);
    const count = all - below;
    below = all;
    return count;
  });
}
