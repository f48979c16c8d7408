/** Views of tasks and payloads that the storage adapters share. */
import type { RequestHead, ResponseHead } from "../protocol/heads.ts";
import type { Heads, Payload, StoredFile } from "../protocol/messages.ts";
import { NONE_RETURNED } from "../tasks/attempt.ts";
import type { TaskEvent, TaskEventBody } from "../tasks/event.ts";
import {
  endedBadly,
  hasExpired,
  type ReturnedAttempt,
  scheduleOfKey,
  type Task,
  type TaskFailure,
  type TaskProgress,
  type TaskStatus,
} from "../tasks/task.ts";
import type { TakenTime } from "./hosting/schedules.ts";
import type { Firing, NewTask, SubmitOutcome, TaskKey } from "./storage.ts";

/** How the status of a task is stored. A queued task that is not yet due is `scheduled`. */
export const STATUS = {
  scheduled: 0,
  ready: 1,
  running: 2,
  success: 3,
  failure: 4,
  cancelled: 5,
} as const;

const STATUSES: readonly TaskStatus[] = [
  "queued",
  "queued",
  "running",
  "success",
  "failure",
  "cancelled",
];

/** The numbers by which a status is stored. */
export function storedStatuses(status: TaskStatus): number[] {
  return status === "queued" ? [STATUS.scheduled, STATUS.ready] : [STATUS[status]];
}

/** The status of a task by the number that is stored. */
export function statusOf(stored: unknown): TaskStatus {
  return STATUSES[Number(stored)] ?? "queued";
}

/** The task of a row, of either database, with what each stores in its own way. */
export function taskOf(
  row: { readonly [column: string]: unknown },
  progress: TaskProgress | undefined,
  returned: readonly ReturnedAttempt[],
): Task {
  return {
    deploymentId: String(row.deployment_id),
    taskId: String(row.task_id),
    endpoint: String(row.endpoint),
    status: statusOf(row.status),
    priority: Number(row.priority),
    createdAtMs: Number(row.created_at_ms),
    runAtMs: Number(row.run_at_ms),
    startByMs: optionalNumber(row.start_by_ms),
    startedAtMs: optionalNumber(row.started_at_ms),
    finishedAtMs: optionalNumber(row.finished_at_ms),
    expiresAtMs: Number(row.expires_at_ms),
    attempt: Number(row.attempt),
    worker: optionalText(row.lease_id),
    returned,
    failedAttempts: Number(row.failed_attempts),
    progress,
    retryOf: optionalText(row.retry_of),
    key: optionalText(row.key) || undefined,
    failure: fromJson<TaskFailure>(row.failure),
    peakMemoryBytes: optionalNumber(row.peak_memory_bytes),
    trace: optionalText(row.trace),
    lastSequence: Number(row.last_sequence),
    schedule: scheduleOfKey(row.idempotency_key),
    tags: readTags(row.tags),
  };
}

/** The value of a column of numbers; undefined for NULL. */
export function optionalNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function optionalText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The value of a column of JSON text; undefined for NULL. */
export function fromJson<Value>(text: unknown): Value | undefined {
  return typeof text === "string" ? (JSON.parse(text) as Value) : undefined;
}

/**
 * Tags as a row has them, with a line break before, between and after them: a search for one with its
 * breaks finds no other, as no tag has any. Null for none.
 */
export function tagsText(tags: readonly string[] | undefined): string | null {
  return tags === undefined ? null : `\n${tags.join("\n")}\n`;
}

/** What of `tagsText` a row has in it that has all of these tags. */
export function tagTexts(tags: readonly string[]): (string | null)[] {
  return tags.map((tag) => tagsText([tag]));
}

/** The reverse of `tagsText`. */
export function readTags(text: unknown): readonly string[] | undefined {
  return typeof text === "string" ? text.slice(1, -1).split("\n") : undefined;
}

/** Identifies one payload of a task. */
export interface PayloadKey extends TaskKey {
  readonly side: "arguments" | "result";
}

/** Builds the task that a read would return right after it was stored, without reading. */
export function asStored(task: NewTask, claimed: boolean): Task {
  const { deploymentId, taskId, endpoint, priority, createdAtMs, runAtMs, startByMs } = task;
  const { expiresAtMs, retryOf, key, trace } = task;
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
    worker: claimed ? task.leaseId : undefined,
    returned: NONE_RETURNED,
    failedAttempts: 0,
    progress: undefined,
    retryOf,
    key: key || undefined,
    failure: undefined,
    trace,
    lastSequence: claimed ? 2 : 1,
    schedule: scheduleOfKey(task.idempotency?.key),
    tags: task.tags,
  };
}

/** The time that a firing takes from its schedule. */
export function takenTime({ schedule, atMs, nextAtMs, end }: Firing): TakenTime {
  return end.outcome === "task"
    ? { ...{ schedule, atMs, nextAtMs, outcome: "task", message: "" }, taskId: end.task.taskId }
    : { schedule, atMs, nextAtMs, ...end, taskId: undefined };
}

/** The same where its task was not stored; undefined where it was. */
export function correctedTime(firing: Firing, submitted: SubmitOutcome): TakenTime | undefined {
  const taken = takenTime(firing);
  switch (submitted.outcome) {
    case "stored":
      return undefined;
    case "replayed":
      return { ...taken, taskId: submitted.task.taskId };
    case "key_reused": {
      const message = "a task for this time is there, with other arguments";
      return { ...taken, outcome: "refused", message, taskId: undefined };
    }
    default: {
      // The time stays: it is fired when there is room, or missed.
      const message = "the queue of its endpoint is full: it is tried again until it is missed";
      const { atMs: nextAtMs } = firing;
      return { ...taken, nextAtMs, outcome: "refused", message, taskId: undefined };
    }
  }
}

/** The event of a row of `task_events`, of either database. */
export function toEvent(row: { readonly [column: string]: unknown }): TaskEvent {
  return {
    sequence: Number(row.sequence),
    timeMs: Number(row.time_ms),
    attempt: Number(row.attempt),
    body: JSON.parse(String(row.body)) as TaskEventBody,
  };
}

/** What a key that an earlier task was stored with means for another task. */
export function keyHeldBy(
  earlier: Pick<Task, "status" | "expiresAtMs">,
  digest: string,
  { idempotency, createdAtMs }: NewTask,
): "replayed" | "key_reused" | "free" {
  if (hasExpired(earlier, createdAtMs)) {
    return "free";
  }
  if (digest !== idempotency?.digest) {
    return "key_reused";
  }
  return endedBadly(earlier.status) && idempotency.replay !== "always" ? "free" : "replayed";
}

/** Adapters know the protocol by its types alone. */
export { isBare } from "../protocol/messages.ts";

/** Characters of the arguments that the row of a task keeps, where the arguments are stored elsewhere. */
const MAX_PREVIEW_CHARACTERS = 500;

/** How the JSON of a payload begins, by which lists show and find it. */
export function previewOf({ json }: Payload): string {
  return json.slice(0, MAX_PREVIEW_CHARACTERS).toWellFormed();
}

/** The head of a payload as it is stored beside its text; null for nearly all. */
export function headText({ request, response }: Heads): string | null {
  const head = request ?? response;
  return head === undefined ? null : JSON.stringify(head);
}

/** The reverse of `headText`. */
export function readHeads(side: PayloadKey["side"], text: unknown): Heads {
  if (typeof text !== "string") {
    return {};
  }
  const head: unknown = JSON.parse(text);
  return side === "arguments"
    ? { request: head as RequestHead }
    : { response: head as ResponseHead };
}

/** The size of arguments or of a result: of its JSON, and of its files. */
export function payloadBytes({ json, jsonBytes, files, text }: Payload): number {
  let bytes = (jsonBytes?.byteLength ?? Buffer.byteLength(json)) + (text?.blob.size ?? 0);
  for (const file of files) {
    bytes += "blob" in file ? file.blob.size : file.data.byteLength;
  }
  return bytes;
}

/** Lists a payload's files in the blob store, including its text. */
export function storedFiles({ files, text }: Payload): StoredFile[] {
  const stored = files.filter((file): file is StoredFile => "blob" in file);
  return text === undefined ? stored : [text, ...stored];
}
