import type { Payload, StoredFile } from "../protocol/messages.ts";
import type { Task } from "../tasks/task.ts";
import type { NewTask, TaskKey } from "./storage.ts";

/** Which payload of which task. */
export interface PayloadKey extends TaskKey {
  readonly side: "arguments" | "result";
}

/** A task that was just stored, as a read would give it, without the cost of one. */
export function asStored(task: NewTask, claimed: boolean): Task {
  const { deploymentId, taskId, endpoint, priority, createdAtMs, runAtMs, startByMs } = task;
  const { expiresAtMs, retryOf, trace } = task;
  return {
    deploymentId,
    taskId,
    endpoint,
    status: claimed ? "running" : "queued",
    priority,
    createdAtMs,
    runAtMs,
    startByMs,
    startedAtMs: claimed ? createdAtMs : undefined,
    finishedAtMs: undefined,
    expiresAtMs,
    attempt: claimed ? 1 : 0,
    failedAttempts: 0,
    progress: undefined,
    retryOf,
    failure: undefined,
    trace,
    lastSequence: claimed ? 2 : 1,
  };
}

/** The files of a payload that stand in the blob store, its text among them. */
export function storedFiles({ files, text }: Payload): StoredFile[] {
  const stored = files.filter((file): file is StoredFile => "blob" in file);
  return text === undefined ? stored : [text, ...stored];
}
