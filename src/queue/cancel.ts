/**
 * Cancellation of a task. A queued task is cancelled at once in the storage; a
 * running one is aborted on the node that runs it.
 */
import { problem } from "../errors.ts";
import type { DeploymentMetricsOf } from "../metrics/metrics.ts";
import type { Storage } from "../storage/storage.ts";
import { isFinal, type Task } from "../tasks/task.ts";
import type { Attempts } from "./attempts.ts";
import type { Peers } from "./peers.ts";
import { finished, notFound } from "./refusals.ts";
import type { Changes } from "./waits/changes.ts";

/**
 * How long a cancel waits beyond the grace of an abort: by then the abort has killed what did
 * not listen, and is recorded.
 */
const ABORT_MARGIN_MS = 5_000;

interface CancelTaskOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "cancelTask">;
  readonly attempts: Pick<Attempts, "abort">;
  readonly peers: Pick<Peers, "requestAbort"> | undefined;
  readonly changes: Pick<Changes, "publish">;
  readonly graceMs: number;
  readonly now: () => number;
  readonly metricsOf?: DeploymentMetricsOf | undefined;
  /** Resolves with the task when it no longer runs, or when the time is over. */
  readonly untilEnded: (waitMs: number) => Promise<Task>;
}

/** Resolves with the cancelled task; throws TASK_FINISHED, TASK_ALREADY_STARTED or TASK_NOT_FOUND. */
export async function cancelTask(
  taskId: string,
  abort: boolean,
  options: CancelTaskOptions,
): Promise<Task> {
  const { deploymentId, storage, changes, metricsOf, now } = options;
  const key = { deploymentId, taskId };
  const outcome = await storage.cancelTask({ ...key, nowMs: now() }).catch((err: unknown) => {
    // The cancellation may have been stored all the same, so waiting callers read the task again.
    changes.publish(taskId);
    throw err;
  });
  if (outcome === undefined) {
    throw notFound(taskId);
  }
  const { task } = outcome;
  if (outcome.outcome === "cancelled") {
    metricsOf?.(deploymentId)?.taskFinished(task.endpoint, "cancelled", undefined);
    changes.publish(taskId, task);
    return task;
  }
  if (isFinal(task.status)) {
    throw finished(task);
  }
  if (!abort) {
    throw started(taskId, "is already running: add abort=true to stop it");
  }
  return abortTask(taskId, options);
}

async function abortTask(taskId: string, options: CancelTaskOptions): Promise<Task> {
  const { attempts, peers, graceMs, untilEnded } = options;
  const waitMs = graceMs + ABORT_MARGIN_MS;
  const ended = untilEnded(waitMs);
  const asked = attempts.abort(taskId) ? undefined : peers?.requestAbort(taskId);
  // Together: either may fail while the other is under way.
  const [task] = await Promise.all([ended, asked]);
  if (task.status === "cancelled") {
    return task;
  }
  if (isFinal(task.status)) {
    throw finished(task);
  }
  if (task.status === "queued") {
    return cancelTask(taskId, true, options);
  }
  throw started(taskId, `could not be stopped within ${waitMs} ms: try again`);
}

function started(taskId: string, why: string) {
  return problem("TASK_ALREADY_STARTED", `task ${taskId} ${why}`, {
    metadata: { task_id: taskId },
  });
}
