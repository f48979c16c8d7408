/** Decodes task states and task events from the data plane's JSON. */

/** The status of a task. */
export type TaskStatusValue = "queued" | "running" | "success" | "failure" | "cancelled";

/** Why a task failed. */
export interface TaskFault {
  /** `error`, `timeout`, `worker_lost`, `out_of_memory` and the like. */
  readonly reason: string;
  readonly code: string;
  readonly message: string;
}

/** The progress that a task reports. */
export interface Progress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly message: string;
}

/** One execution of a task. */
export interface AttemptState {
  /** From 1. */
  readonly number: number;
  readonly worker: string;
  /** The node of that worker; may be empty. */
  readonly node: string;
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
  /** Why it ended; undefined while it runs, after success, and when it was cancelled. */
  readonly failure: TaskFault | undefined;
  /** The earliest start of the next attempt, unless that was at once. */
  readonly retryAt: Date | undefined;
  /** The most memory that its worker held while it ran, in bytes; undefined where it was not measured. */
  readonly peakMemoryBytes: number | undefined;
}

/** Why a task is queued. */
export interface WhyQueued {
  /** `workers_busy`, `worker_starting`, `no_matching_worker` and the like. */
  readonly code: string;
  /** A sentence for people, without its full stop. */
  readonly message: string;
}

/** A snapshot of a task. */
export interface TaskState {
  readonly value: TaskStatusValue;
  readonly id: string;
  readonly createdAt: Date;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  /** When the task and its result are deleted. A task is never deleted before it has ended. */
  readonly expiresAt: Date | undefined;
  /** The current attempt, counted from 1; 0 before the first. */
  readonly attempt: number;
  /** The first and the last attempts, oldest first; empty with an older server. */
  readonly attempts: readonly AttemptState[];
  readonly priority: number;
  /** The task does not start earlier. */
  readonly runAt: Date | undefined;
  /** The task fails if it has not started by then. */
  readonly startBy: Date | undefined;
  readonly progress: Progress | undefined;
  /** The id of the task that this one retries. */
  readonly retryOf: string | undefined;
  /** Whose it is among the callers that share its endpoint. */
  readonly key: string | undefined;
  /** Its tags, in the order in which they were given; empty with an older server. */
  readonly tags: readonly string[];
  readonly failure: TaskFault | undefined;
  /** How many tasks are ahead of it in the queue, when the server counts them. */
  readonly queuePosition: number | undefined;
  readonly estimatedStart: Date | undefined;
  /** The worker that it waits for, when none that could run it is there or starts. */
  readonly waitsFor: string | undefined;
  /** Why it is queued, while it is; undefined with an older server. */
  readonly queuedReason: WhyQueued | undefined;
}

/** True when the task is in a final state. */
export function hasEnded({ value }: Pick<TaskState, "value">): boolean {
  return value === "success" || value === "failure" || value === "cancelled";
}

interface EventBase {
  /** Position in the task's log, from 1. */
  readonly sequence: number;
  readonly time: Date;
  readonly attempt: number;
}

/** One entry of a task's log. */
export type TaskLogEvent =
  | (EventBase & {
      readonly type: "state";
      readonly status: TaskStatusValue;
      /** Why the task failed or, with `queued`, why the attempt before ended. */
      readonly failure: TaskFault | undefined;
      /** With `queued`: the earliest start of the next attempt, unless that is at once. */
      readonly retryAt: Date | undefined;
    })
  | (EventBase & { readonly type: "progress" } & Progress)
  | (EventBase & {
      readonly type: "log";
      readonly level: string;
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
      /**
       * Its number among the lines of its attempt, from 1; 0 for lines of the platform. Of long
       * logs the first 200 lines of an attempt are kept and the last 800: where numbers are
       * missing, lines were left out.
       */
      readonly line: number;
    });

type Json = Readonly<Record<string, unknown>>;

export function readState(json: Json): TaskState {
  return {
    value: json.status as TaskStatusValue,
    id: String(json.task_id),
    createdAt: date(json.created_at) ?? new Date(0),
    startedAt: date(json.started_at),
    finishedAt: date(json.finished_at),
    expiresAt: date(json.expires_at),
    attempt: Number(json.attempt ?? 0),
    attempts: ((json.attempts as Json[] | undefined) ?? []).map(readAttempt),
    priority: Number(json.priority ?? 0),
    runAt: date(json.run_at),
    startBy: date(json.start_by),
    progress: (json.progress as Progress | null) ?? undefined,
    retryOf: (json.retry_of as string | null) ?? undefined,
    key: json.key as string | undefined,
    tags: (json.tags as string[] | undefined) ?? [],
    failure: (json.failure as TaskFault | null) ?? undefined,
    queuePosition: json.queue_position as number | undefined,
    estimatedStart: date(json.estimated_start),
    waitsFor: json.waits_for as string | undefined,
    queuedReason: json.queued_reason as WhyQueued | undefined,
  };
}

function readAttempt(json: Json): AttemptState {
  return {
    number: Number(json.number),
    worker: String(json.worker),
    node: String(json.node),
    startedAt: date(json.started_at) ?? new Date(0),
    endedAt: date(json.ended_at),
    failure: (json.failure as TaskFault | null) ?? undefined,
    retryAt: date(json.retry_at),
    peakMemoryBytes: (json.peak_memory_bytes as number | null) ?? undefined,
  };
}

/** Decodes an event; undefined for an unknown kind. */
export function readEvent(json: Json): TaskLogEvent | undefined {
  const base = {
    sequence: Number(json.sequence),
    time: date(json.time) ?? new Date(0),
    attempt: Number(json.attempt ?? 0),
  };
  if (json.state) {
    const { status, failure, retry_at } = json.state as {
      status: TaskStatusValue;
      failure?: TaskFault;
      retry_at?: string;
    };
    return { ...base, type: "state", status, failure, retryAt: date(retry_at) };
  }
  if (json.progress) {
    return { ...base, type: "progress", ...(json.progress as Progress) };
  }
  if (json.log) {
    const { level, message, fields, line } = json.log as Json & { level: string; message: string };
    const log = { level, message, fields: (fields ?? {}) as Json, line: Number(line ?? 0) };
    return { ...base, type: "log", ...log };
  }
  return undefined;
}

function date(text: unknown): Date | undefined {
  return typeof text === "string" ? new Date(text) : undefined;
}
