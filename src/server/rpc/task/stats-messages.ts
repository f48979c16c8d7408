/** TaskStats messages, summed up from queues and from tasks that were counted. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TaskStatsSchema } from "../../../../gen/tessera/v1/organization_task_pb.js";
import { METRICS } from "../../../metrics/declarations.ts";
import { percentile } from "../../../metrics/history/percentile.ts";
import { NO_TASKS, sumOf, type TaskSums } from "../../../metrics/history/task-tally.ts";
import type { QueueState } from "../../../storage/queues.ts";
import { durationFromMs } from "../../../time/messages.ts";

/** What is known of an endpoint. */
interface EndpointNumbers {
  readonly endpoint: string;
  readonly state: QueueState | undefined;
  readonly sums: TaskSums;
}

/** The endpoints with tasks, sorted by name. */
export function endpointsOf(
  states: readonly QueueState[],
  tasks: ReadonlyMap<string, TaskSums>,
): readonly EndpointNumbers[] {
  const byEndpoint = new Map(states.map((state) => [state.endpoint, state]));
  return [...new Set([...byEndpoint.keys(), ...tasks.keys()])].sort().map((endpoint) => ({
    endpoint,
    state: byEndpoint.get(endpoint),
    sums: tasks.get(endpoint) ?? NO_TASKS,
  }));
}

/** The numbers of endpoints together. `minutes` is the length of the window. */
export function toStats(
  endpoints: readonly EndpointNumbers[],
  { minutes, nowMs }: { readonly minutes: number; readonly nowMs: number },
): MessageInitShape<typeof TaskStatsSchema> {
  const states = endpoints.flatMap(({ state }) => state ?? []);
  const sums = endpoints.reduce((sum, one) => sumOf(sum, one.sums), NO_TASKS);
  const { succeeded, failed, cancelled, retried } = sums;
  const oldestMs = states.reduce(
    (oldest, { oldestDueAtMs = Number.POSITIVE_INFINITY }) => Math.min(oldest, oldestDueAtMs),
    Number.POSITIVE_INFINITY,
  );
  const queueTime = percentilesOf(sums.queueCounts, METRICS.queueWait.buckets);
  const runTime = percentilesOf(sums.runCounts, METRICS.runTime.buckets);
  return {
    queued: states.reduce((sum, { queued }) => sum + queued, 0),
    running: states.reduce((sum, { running }) => sum + running, 0),
    ...(Number.isFinite(oldestMs) && {
      oldestQueuedAge: durationFromMs(Math.max(0, nowMs - oldestMs)),
    }),
    ...{ succeeded, failed, cancelled, retried },
    finishedPerMinute: (succeeded + failed + cancelled) / minutes,
    ...(queueTime && { queueTime }),
    ...(runTime && { runTime }),
  };
}

/** Undefined for a histogram without values. */
function percentilesOf(counts: readonly number[], bounds: readonly number[]) {
  const at = (fraction: number) => durationFromMs(percentile(fraction, counts, bounds) * 1_000);
  return counts.some((count) => count > 0)
    ? { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    : undefined;
}
