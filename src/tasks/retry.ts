/** The retry policy of tasks: exponential backoff with jitter. */

/** Longest wait between two attempts of a task, however many there were. */
const MAX_RETRY_BACKOFF_MS = 60 * 60 * 1000;

/** The part of the wait that chance may add. */
const JITTER = 0.25;

/** Codes that a second attempt with the same arguments cannot change. */
const HOPELESS = new Set(["invalid_argument", "unimplemented", "permission_denied"]);

interface RetryQuestion {
  /** Attempts that failed, this one included. */
  readonly failures: number;
  /** The code that it failed with. */
  readonly code: string;
  readonly policy: { readonly max: number; readonly backoffMs: number };
  readonly nowMs: number;
  /** From 0 to 1: how much of the jitter to add. */
  readonly random: number;
}

/**
 * When to try a failed task again, in milliseconds since 1970; undefined when
 * it has failed for good. The wait doubles with each attempt, up to an hour,
 * and is up to a quarter longer, so that tasks which failed together do not
 * come back together.
 */
export function retryAt(question: RetryQuestion): number | undefined {
  const { failures, code, policy, nowMs, random } = question;
  if (failures > policy.max || HOPELESS.has(code)) {
    return undefined;
  }
  const waitMs = policy.backoffMs * 2 ** (failures - 1) * (1 + random * JITTER);
  return nowMs + Math.round(Math.min(waitMs, MAX_RETRY_BACKOFF_MS));
}
