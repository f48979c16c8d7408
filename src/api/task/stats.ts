/**
 * GetTaskStats: numbers of an organization's tasks. What it reads of an
 * organization is shared by all who ask (`SharedReads`), and read for the whole
 * organization: each caller is then answered for the deployments that it may see.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  GetTaskStatsRequest,
  OrganizationTaskService,
  TaskStatsSchema,
} from "../../../gen/tessera/v1/organization_task_pb.js";
import { METRICS } from "../../metrics/declarations.ts";
import type { TasksAnswer } from "../../metrics/history/history.ts";
import type { KeptHistory } from "../../metrics/history/kept.ts";
import { percentile } from "../../metrics/history/percentile.ts";
import { settledAt } from "../../metrics/history/range.ts";
import {
  type CallSums,
  NO_CALLS,
  NO_TASKS,
  sumOf,
  sumOfCalls,
  type TaskSums,
} from "../../metrics/history/task-tally.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import type { QueueState } from "../../storage/queues.ts";
import type { Storage } from "../../storage/storage.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";
import { SharedReads } from "../../time/shared-reads.ts";
import { deploymentsOf } from "../deployments-of.ts";
import { chosen, readerOf } from "./search.ts";

/** How old the queues in an answer may be. */
const QUEUE_STATES_TTL_MS = 2_000;
/** How long counted tasks are remembered: they change every ten seconds, and so does their key. */
const COUNTED_TASKS_TTL_MS = 10_000;
/** Windows are rounded up to a multiple of this. */
const WINDOW_STEP_MS = 10_000;
/** The window of a request that names none. */
const DEFAULT_WINDOW_MS = 3_600_000;

export interface StatsOptions {
  readonly accounts: Pick<Organizations, "listDeployments">;
  readonly tasks: Pick<Storage, "queueStates">;
  readonly history: Pick<KeptHistory, "tasks">;
  readonly now: () => number;
}

/** The deployments of an organization and their queues. */
interface Queues {
  readonly nowMs: number;
  readonly deployments: readonly DeploymentRecord[];
  /** By id of the deployment. */
  readonly states: ReadonlyMap<string, readonly QueueState[]>;
}

export function statsHandlers(
  options: StatsOptions,
): Pick<ServiceImpl<typeof OrganizationTaskService>, "getTaskStats"> {
  const { now } = options;
  const queues = new SharedReads<Queues>({ maxAgeMs: QUEUE_STATES_TTL_MS, now });
  const counted = new SharedReads<TasksAnswer>({ maxAgeMs: COUNTED_TASKS_TTL_MS, now });
  return {
    async getTaskStats(req: GetTaskStatsRequest, ctx: HandlerContext) {
      const reader = readerOf(req, ctx);
      const { organizationId } = reader;
      const names = [...new Set(req.deployments)].sort();
      const read = () => readQueues(options, organizationId);
      let found = await queues.get(organizationId, read);
      if (!names.every((name) => found.deployments.some((one) => one.name === name))) {
        // It may be new.
        found = await queues.again(organizationId, read);
      }
      const deployments = chosen(found.deployments, reader, names);
      const windowMs = windowOf(req);
      const query = { organizationId, windowMs, nowMs: now() };
      const key = JSON.stringify([organizationId, windowMs, settledAt(query.nowMs)]);
      const tasks = await counted.get(key, () => options.history.tasks(query));
      const covered = { minutes: (tasks.toMs - tasks.fromMs) / 60_000, nowMs: found.nowMs };
      const parts = deployments.flatMap(({ deploymentId, name }) => {
        const states = found.states.get(deploymentId) ?? [];
        const endpoints = endpointsOf(states, tasks.tally.of(deploymentId));
        const calls = tasks.tally.callsOf(deploymentId);
        return endpoints.length + calls.size === 0 ? [] : [{ name, endpoints, calls }];
      });
      return {
        total: toStats(
          parts.flatMap(({ endpoints }) => endpoints),
          covered,
        ),
        ...toCalls(together(parts.flatMap(({ calls }) => [...calls.values()]))),
        deployments: parts.map(({ name, endpoints, calls }) => ({
          deployment: name,
          total: toStats(endpoints, covered),
          endpoints: endpoints.map((one) => ({
            endpoint: one.endpoint,
            stats: toStats([one], covered),
          })),
          ...toCalls(together(calls.values())),
          endpointCalls: Array.from(calls, ([endpoint, sums]) => ({
            endpoint,
            ...toCalls(sums),
            failures: toFailures(sums),
          })).sort((one, other) => (one.endpoint < other.endpoint ? -1 : 1)),
        })),
        startTime: timestampFromMs(tasks.fromMs),
        endTime: timestampFromMs(tasks.toMs),
      };
    },
  };
}

/** Two queries, however many deployments and tasks there are. */
async function readQueues(
  { accounts, tasks, now }: StatsOptions,
  organizationId: string,
): Promise<Queues> {
  const deployments = await deploymentsOf(accounts, organizationId);
  const nowMs = now();
  const deploymentIds = deployments.map(({ deploymentId }) => deploymentId);
  const states =
    deploymentIds.length === 0 ? [] : await tasks.queueStates({ deploymentIds, nowMs });
  return {
    nowMs,
    deployments,
    states: Map.groupBy(states, ({ deploymentId }) => deploymentId),
  };
}

function windowOf({ window }: GetTaskStatsRequest): number {
  const askedMs = window === undefined ? DEFAULT_WINDOW_MS : durationMs(window);
  return Math.ceil(askedMs / WINDOW_STEP_MS) * WINDOW_STEP_MS;
}

// TaskStats messages, summed up from queues and from tasks that were counted.

/** What is known of an endpoint. */
interface EndpointNumbers {
  readonly endpoint: string;
  readonly state: QueueState | undefined;
  readonly sums: TaskSums;
}

/** The endpoints with tasks, sorted by name. */
function endpointsOf(
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
function toStats(
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

const together = (calls: Iterable<CallSums>): CallSums => [...calls].reduce(sumOfCalls, NO_CALLS);

function toCalls({ answered, failed, counts }: CallSums) {
  const callTime = percentilesOf(counts, METRICS.requestDuration.buckets);
  return { calls: answered, failedCalls: failed, ...(callTime && { callTime }) };
}

/** The codes of failed calls, the most frequent first. */
const toFailures = ({ codes }: CallSums) =>
  Array.from(codes, ([code, calls]) => ({ code, calls })).sort(
    (one, other) => other.calls - one.calls || (one.code < other.code ? -1 : 1),
  );

/** Undefined for a histogram without values. */
function percentilesOf(counts: readonly number[], bounds: readonly number[]) {
  const at = (fraction: number) => durationFromMs(percentile(fraction, counts, bounds) * 1_000);
  return counts.some((count) => count > 0)
    ? { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    : undefined;
}
