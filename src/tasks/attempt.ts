/**
 * The attempts of a task. Its row records only attempts that went back to the
 * queue; the current one, and the one that ended the task, follow from the
 * row's own columns. So a task that succeeds the first time records nothing.
 */
import {
  isFinal,
  type ReturnedAttempt,
  type Task,
  type TaskAttempt,
  type TaskFailure,
} from "./task.ts";

/** Returned attempts that a task keeps from its beginning. */
export const MAX_FIRST_ATTEMPTS = 5;
/** Returned attempts that a task keeps from its end. */
export const MAX_LAST_ATTEMPTS = 15;
/** Longest message of a recorded attempt; the event log has the whole one. */
const MAX_RECORDED_MESSAGE_CHARACTERS = 1_000;

/** For tasks without returned attempts, which nearly all are. */
export const NONE_RETURNED: readonly ReturnedAttempt[] = Object.freeze([]);

/** What an attempt and its return to the queue are recorded from. */
interface AttemptReturn {
  readonly number: number;
  readonly worker: string;
  readonly nowMs: number;
  /** As in `AttemptEnd`. */
  readonly runAtMs: number | undefined;
  readonly failure: TaskFailure;
  readonly peakMemoryBytes: number | undefined;
}

/** The record of a returned attempt, without its start, which only the row knows. */
export function returnedAttempt(given: AttemptReturn): Omit<ReturnedAttempt, "startedAtMs"> {
  const { number, worker, nowMs, runAtMs, failure, peakMemoryBytes } = given;
  const { reason, code, message } = failure;
  const brief = message.slice(0, MAX_RECORDED_MESSAGE_CHARACTERS).toWellFormed();
  return {
    number,
    worker,
    endedAtMs: nowMs,
    failure: { reason, code, message: brief },
    ...(runAtMs !== undefined && runAtMs > nowMs && { retryAtMs: runAtMs }),
    ...(peakMemoryBytes !== undefined && { peakMemoryBytes }),
  };
}

/** Appends a record. Beyond the bound, those in the middle are dropped, oldest first. */
export function withReturned(
  returned: readonly ReturnedAttempt[],
  one: ReturnedAttempt,
): ReturnedAttempt[] {
  const kept = [...returned, one];
  if (kept.length > MAX_FIRST_ATTEMPTS + MAX_LAST_ATTEMPTS) {
    kept.splice(MAX_FIRST_ATTEMPTS, 1);
  }
  return kept;
}

/** All known attempts, oldest first: the returned ones, then the running or last one. */
export function attemptsOf(task: Task): TaskAttempt[] {
  const {
    attempt,
    startedAtMs,
    worker = "",
    finishedAtMs,
    failure,
    returned,
    peakMemoryBytes,
  } = task;
  const ran = task.status === "running" || isFinal(task.status);
  if (!ran || startedAtMs === undefined || returned.at(-1)?.number === attempt) {
    return [...returned];
  }
  const last: TaskAttempt = {
    number: attempt,
    worker,
    startedAtMs,
    ...(finishedAtMs !== undefined && { endedAtMs: finishedAtMs }),
    ...(failure && { failure }),
    ...(peakMemoryBytes !== undefined && { peakMemoryBytes }),
  };
  return [...returned, last];
}
