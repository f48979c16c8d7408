/** The longest wait between two attempts, however many there were. */
const MAX_BACKOFF_MS = 60 * 60 * 1000;

/** Codes that a second attempt with the same arguments cannot change. */
const HOPELESS = new Set(["invalid_argument", "unimplemented", "permission_denied"]);

export interface RetryQuestion {
  /** Attempts that failed, this one included. */
  readonly failures: number;
  /** The code that it failed with. */
  readonly code: string;
  readonly policy: { readonly max: number; readonly backoffMs: number };
  readonly nowMs: number;
}

/**
 * When to try a failed task again, in milliseconds since 1970; undefined when
 * it has failed for good. The wait doubles with each attempt, up to an hour.
 */
export function retryAt({ failures, code, policy, nowMs }: RetryQuestion): number | undefined {
  if (failures > policy.max || HOPELESS.has(code)) {
    return undefined;
  }
  return nowMs + Math.min(policy.backoffMs * 2 ** (failures - 1), MAX_BACKOFF_MS);
}
