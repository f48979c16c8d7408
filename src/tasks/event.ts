/**
 * The event log of a task: state changes, progress and log lines, numbered
 * from 1 in the order in which they happened.
 *
 * Most tasks go queued, running, final, and all three follow from the task's own
 * columns. So these state changes are not stored as rows; `eventLog` derives them,
 * and the log costs nothing for a task that reports nothing. Only events that the
 * columns do not contain are rows: progress, log lines and, when an attempt goes
 * back to the queue, its beginning and its return.
 */
import type { LogLevel } from "../protocol/messages.ts";
import {
  isFinal,
  type Task,
  type TaskFailure,
  type TaskProgress,
  type TaskStatus,
} from "./task.ts";

export type TaskEventBody =
  | {
      readonly kind: "state";
      readonly status: TaskStatus;
      /** Why the task failed or, with `queued`, why the attempt before ended. */
      readonly failure?: TaskFailure;
      /** With `queued`: the earliest start of the next attempt, unless that is at once. */
      readonly retryAtMs?: number;
    }
  | ({ readonly kind: "progress" } & TaskProgress)
  | {
      readonly kind: "log";
      /** Its number among the lines of its attempt, from 1; absent for lines of the platform. */
      readonly line?: number;
      readonly level: LogLevel;
      readonly message: string;
      /** JSON text of an object. */
      readonly fieldsJson?: string;
    };

export interface TaskEvent {
  readonly sequence: number;
  readonly timeMs: number;
  readonly attempt: number;
  readonly body: TaskEventBody;
}

/** A task with the data to derive its log, and how far its streamed result is. */
export interface TaskHistory extends LogSource {
  /** The number of the last piece of the current attempt's streamed result; 0 without any. */
  readonly lastPiece: number;
}

interface LogSource {
  readonly task: Task;
  /** Sequence number of the running state of the current attempt; 0 while queued. */
  readonly startedSequence: number;
  /** The stored events, in order. */
  readonly stored: readonly TaskEvent[];
}

/** The event of an attempt's return to the queue. */
export function returnEvent(failure: TaskFailure, retryAtMs: number | undefined): TaskEventBody {
  return {
    kind: "state",
    status: "queued",
    failure,
    ...(retryAtMs !== undefined && { retryAtMs }),
  };
}

/** The numbers of the lines that the log of an attempt is not to have any more. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/** All events after `afterSequence`, in order. */
export function eventLog(history: LogSource, afterSequence: number): TaskEvent[] {
  return [...derived(history), ...history.stored]
    .filter((event) => event.sequence > afterSequence)
    .sort((a, b) => a.sequence - b.sequence);
}

function derived({ task, startedSequence }: LogSource): TaskEvent[] {
  const events = [stateEvent(1, task.createdAtMs, 0, "queued")];
  if (startedSequence > 0 && task.startedAtMs !== undefined) {
    events.push(stateEvent(startedSequence, task.startedAtMs, task.attempt, "running"));
  }
  if (isFinal(task.status) && task.finishedAtMs !== undefined) {
    const { lastSequence, finishedAtMs, attempt, status, failure } = task;
    events.push(stateEvent(lastSequence, finishedAtMs, attempt, status, failure));
  }
  return events;
}

function stateEvent(
  sequence: number,
  timeMs: number,
  attempt: number,
  ...[status, failure]: [status: TaskStatus, failure?: TaskFailure]
): TaskEvent {
  const body: TaskEventBody = { kind: "state", status, ...(failure && { failure }) };
  return { sequence, timeMs, attempt, body };
}
