/**
 * The task: its data, its states and the only transitions between them.
 *
 * ```
 *            submit
 *              |
 *           queued --cancel--> cancelled
 *            claim \-- its deadline to start passed --> failure (expired)
 *              |
 *           running --ok------> success
 *              |  \--throws, times out, loses its worker or node too often--> failure
 *              |  \--abort----> cancelled
 *              \--retry, lost worker or node, shutdown--> queued
 * ```
 *
 * `success`, `failure` and `cancelled` are final: a task that has reached one
 * never changes again. No I/O happens here; the storage adapters apply these
 * rules inside their transactions.
 */
export type TaskStatus = "queued" | "running" | "success" | "failure" | "cancelled";

export type FailureReason =
  | "error"
  | "timeout"
  | "expired"
  | "worker_lost"
  | "out_of_memory"
  | "node_lost"
  | "interrupted";

export interface TaskFailure {
  readonly reason: FailureReason;
  /** The Connect code in its wire spelling, with which fetching the result fails. */
  readonly code: string;
  readonly message: string;
  /** The HTTP status that the function chose; absent: that of the code. */
  readonly status?: number;
  /** The invalid arguments, when the function's schema refused them. */
  readonly violations?: readonly { readonly field: string; readonly description: string }[];
}

export interface TaskProgress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly message: string;
}

/** An attempt that went back to the queue. Times are milliseconds since 1970. */
export interface ReturnedAttempt {
  /** From 1. */
  readonly number: number;
  /** The worker that ran it, which is also its lease. */
  readonly worker: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Why it ended, without violations and with a bounded message. */
  readonly failure: TaskFailure;
  /** The earliest start of the next attempt; absent: at once. */
  readonly retryAtMs?: number;
  /** The most memory that its worker held while it ran; absent: not known. */
  readonly peakMemoryBytes?: number;
}

/** Any attempt of a task: one that returned, the running one, or the one that ended it. */
export type TaskAttempt = Omit<ReturnedAttempt, "endedAtMs" | "failure"> &
  Partial<Pick<ReturnedAttempt, "endedAtMs" | "failure">>;

/** A task without its arguments and result. Times are milliseconds since 1970. */
export interface Task {
  readonly deploymentId: string;
  readonly taskId: string;
  readonly endpoint: string;
  readonly status: TaskStatus;
  /** Higher starts first. */
  readonly priority: number;
  readonly createdAtMs: number;
  /** The earliest start: as submitted, or the time of the retry after a failed attempt. */
  readonly runAtMs: number;
  /** The latest start; a task that misses it fails with `expired`. */
  readonly startByMs: number | undefined;
  readonly startedAtMs: number | undefined;
  readonly finishedAtMs: number | undefined;
  readonly expiresAtMs: number;
  /** From 1; 0 before the first attempt. */
  readonly attempt: number;
  /** The worker of the running attempt, or of the one that ended the task. */
  readonly worker: string | undefined;
  /** Attempts that went back to the queue, oldest first, bounded; `attempt.ts`. */
  readonly returned: readonly ReturnedAttempt[];
  /** Failed attempts that were followed by a retry, without those that lost their worker. */
  readonly failedAttempts: number;
  readonly progress: TaskProgress | undefined;
  readonly retryOf: string | undefined;
  /** Whose it is among the callers that share its endpoint. */
  readonly key: string | undefined;
  /** The name of the schedule that submitted it. */
  readonly schedule: string | undefined;
  /** In the order in which they were given; lists can be filtered by them. Undefined for none. */
  readonly tags: readonly string[] | undefined;
  readonly failure: TaskFailure | undefined;
  /** The most memory that its worker held while the attempt ran that ended it; absent: not known. */
  readonly peakMemoryBytes?: number | undefined;
  /** The trace of its submit, to which its attempts belong. */
  readonly trace: string | undefined;
  /** Sequence number of the newest entry of its event log. */
  readonly lastSequence: number;
}

export function isFinal(status: TaskStatus): boolean {
  return status === "success" || status === "failure" || status === "cancelled";
}

/** A task whose end is not a success: doing the same again is not a repetition. */
export function endedBadly(status: TaskStatus): boolean {
  return status === "failure" || status === "cancelled";
}

/** An expired task is not shown any more: it may be deleted at any moment. */
export function hasExpired(
  { status, expiresAtMs }: Pick<Task, "status" | "expiresAtMs">,
  nowMs: number,
): boolean {
  return isFinal(status) && expiresAtMs <= nowMs;
}

/**
 * The idempotency keys of schedules: one for each time of each schedule, so that no time has two
 * tasks. A task is linked to its schedule by this key, which callers cannot choose.
 */

/** How the keys begin that only schedules use. */
export const SCHEDULE_KEY_PREFIX = "schedule/";

/** The key of the task of a schedule at a time; with `run`, of one that somebody asked for then. */
export function scheduleKey(name: string, atMs: number, run?: string): string {
  const time = new Date(atMs).toISOString();
  return [`${SCHEDULE_KEY_PREFIX}${name}`, time, ...(run === undefined ? [] : [run])].join("/");
}

/** The name of the schedule whose task was stored with this key; undefined for other keys. */
export function scheduleOfKey(key: unknown): string | undefined {
  return typeof key === "string" && key.startsWith(SCHEDULE_KEY_PREFIX)
    ? key.split("/")[1]
    : undefined;
}
