/** From a call that should be queued to the task that is stored, and what is told of it. */
import { type Problem, problem } from "../errors.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Payload } from "../protocol/messages.ts";
import type { NewTask, SubmitOutcome } from "../storage/storage.ts";
import { timeOfTaskId } from "../tasks/id.ts";
import type { Task } from "../tasks/task.ts";
import type { Origin } from "../tracing/context.ts";
import type { OpenSpan } from "../tracing/tracing.ts";

export interface SubmissionOptions {
  readonly retryOf?: string;
  readonly idempotency?: NewTask["idempotency"];
  /** Absent: the endpoint's. */
  readonly priority?: number;
  /** Not to be started before; absent or past: at once. */
  readonly runAtMs?: number;
  /** Not to be started after. */
  readonly startByMs?: number;
  /** The request that asked for it. */
  readonly origin?: Origin;
  /** The trace of the task that it tries again. */
  readonly retriedTrace?: string | undefined;
}

/** A call to queue. */
export interface Submission {
  readonly endpoint: EndpointManifest;
  readonly payload: Payload;
  readonly options?: SubmissionOptions;
}

export interface Submitted {
  readonly task: Task;
  /** It is the task that was stored under this idempotency key before. */
  readonly replayed: boolean;
}

interface NewTaskFacts {
  readonly deploymentId: string;
  readonly taskId: string;
  /** Its own part of the trace, where there is one. */
  readonly span?: OpenSpan | undefined;
}

/** The task of a call. It is accepted at the time in its id, so that ids and times give one order. */
export function toNewTask(
  { endpoint, payload, options = {} }: Submission,
  { deploymentId, taskId, span }: NewTaskFacts,
): NewTask {
  const createdAtMs = timeOfTaskId(taskId);
  const runAtMs = Math.max(createdAtMs, options.runAtMs ?? createdAtMs);
  const { retentionMs, queueLimit } = endpoint;
  const trace = (span ?? options.origin)?.trace;
  const { retryOf, idempotency, startByMs, priority = endpoint.priority } = options;
  return {
    deploymentId,
    taskId,
    endpoint: endpoint.name,
    arguments: payload,
    createdAtMs,
    runAtMs,
    expiresAtMs: runAtMs + retentionMs,
    retentionMs,
    priority,
    queueLimit,
    startByMs,
    retryOf,
    idempotency,
    trace,
  };
}

/** The task that was stored, or why it was not: IDEMPOTENCY_KEY_REUSED or QUEUE_FULL. */
export function toSubmitted(
  outcome: SubmitOutcome,
  { endpoint, options }: Submission,
  retryAfterMs: () => number,
): Submitted | Problem {
  switch (outcome.outcome) {
    case "stored":
      return { task: outcome.task, replayed: false };
    case "replayed":
      return { task: outcome.task, replayed: true };
    case "key_reused":
      return problem(
        "IDEMPOTENCY_KEY_REUSED",
        `the idempotency key ${JSON.stringify(options?.idempotency?.key)} was used for another call (other arguments, another schedule, or the retry of another task): use a new key for a new call`,
      );
    case "blobs_gone":
      return problem(
        "STORAGE_UNAVAILABLE",
        "the files of the arguments were deleted before the task was stored: send them again",
        { retryAfterMs: 1_000 },
      );
    case "queue_full":
      return problem(
        "QUEUE_FULL",
        `${outcome.queued} tasks of endpoint ${endpoint.name} are waiting, its limit is ${endpoint.queueLimit}: try again later`,
        { retryAfterMs: retryAfterMs() },
      );
  }
}
