/** Where a task stands, and its events, as the data plane writes them. */

/** The words for the states of a task. */
export type TaskStatusValue = "queued" | "running" | "success" | "failure" | "cancelled";

/** Why a task has no result. */
export interface TaskFault {
  /** `error`, `timeout`, `worker_lost` and the like. */
  readonly reason: string;
  readonly code: string;
  readonly message: string;
}

/** How far a task is. */
export interface Progress {
  /** From 0 to 1. */
  readonly fraction: number;
  readonly message: string;
}

/** A task at one moment. */
export interface TaskState {
  readonly value: TaskStatusValue;
  readonly id: string;
  readonly createdAt: Date;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  /** When the task and its result are deleted; for one that has not ended, not before it has. */
  readonly expiresAt: Date | undefined;
  /** From 1; 0 before the first. */
  readonly attempt: number;
  readonly priority: number;
  /** It does not start before. */
  readonly runAt: Date | undefined;
  /** It fails if it has not started by then. */
  readonly startBy: Date | undefined;
  readonly progress: Progress | undefined;
  /** The task of which this one is a retry. */
  readonly retryOf: string | undefined;
  readonly failure: TaskFault | undefined;
  /** How many tasks come before it, where that is counted. */
  readonly queuePosition: number | undefined;
  readonly estimatedStart: Date | undefined;
}

/** True when nothing more happens to the task. */
export function hasEnded({ value }: Pick<TaskState, "value">): boolean {
  return value === "success" || value === "failure" || value === "cancelled";
}

interface EventBase {
  /** From 1, in the order of the task's log. */
  readonly sequence: number;
  readonly time: Date;
  readonly attempt: number;
}

/** One entry of a task's log. */
export type TaskLogEvent =
  | (EventBase & {
      readonly type: "state";
      readonly status: TaskStatusValue;
      readonly failure: TaskFault | undefined;
    })
  | (EventBase & { readonly type: "progress" } & Progress)
  | (EventBase & {
      readonly type: "log";
      readonly level: string;
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
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
    priority: Number(json.priority ?? 0),
    runAt: date(json.run_at),
    startBy: date(json.start_by),
    progress: (json.progress as Progress | null) ?? undefined,
    retryOf: (json.retry_of as string | null) ?? undefined,
    failure: (json.failure as TaskFault | null) ?? undefined,
    queuePosition: json.queue_position as number | undefined,
    estimatedStart: date(json.estimated_start),
  };
}

/** An event; undefined for one of a kind that is not known here. */
export function readEvent(json: Json): TaskLogEvent | undefined {
  const base = {
    sequence: Number(json.sequence),
    time: date(json.time) ?? new Date(0),
    attempt: Number(json.attempt ?? 0),
  };
  if (json.state) {
    const { status, failure } = json.state as { status: TaskStatusValue; failure?: TaskFault };
    return { ...base, type: "state", status, failure };
  }
  if (json.progress) {
    return { ...base, type: "progress", ...(json.progress as Progress) };
  }
  if (json.log) {
    const { level, message, fields } = json.log as Json & { level: string; message: string };
    return { ...base, type: "log", level, message, fields: (fields ?? {}) as Json };
  }
  return undefined;
}

function date(text: unknown): Date | undefined {
  return typeof text === "string" ? new Date(text) : undefined;
}
