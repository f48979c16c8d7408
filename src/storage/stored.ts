import type { Task } from "../tasks/task.ts";
import type { NewTask } from "./storage.ts";

/** A task that was just stored, as a read would give it, without the cost of one. */
export function asStored(task: NewTask, claimed: boolean): Task {
  const { deploymentId, taskId, endpoint, createdAtMs, expiresAtMs, retryOf } = task;
  return {
    deploymentId,
    taskId,
    endpoint,
    status: claimed ? "running" : "queued",
    createdAtMs,
    startedAtMs: claimed ? createdAtMs : undefined,
    finishedAtMs: undefined,
    expiresAtMs,
    attempt: claimed ? 1 : 0,
    failedAttempts: 0,
    progress: undefined,
    retryOf,
    failure: undefined,
    lastSequence: claimed ? 2 : 1,
  };
}
