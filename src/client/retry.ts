/**
 * The retry policy: which requests are retried, and after what delay.
 *
 * A `repeatable` request is idempotent: a read, or a submit or a retry with its
 * idempotency key. It is retried when the connection breaks and when the server
 * is busy. Any other request could run twice, so it is retried only when it
 * certainly did not run: no connection was made, or the server refused it
 * before anything began (`NOT_RUN`).
 *
 * The delay between two attempts is the server's `Retry-After`, or else
 * exponential backoff with full jitter: Brooker, "Exponential Backoff And
 * Jitter", AWS Architecture Blog, 2015.
 */
import { codesOf } from "./connection-failure.ts";
import { ConnectionLostError, DeploymentError, UnreachableError } from "./errors.ts";

/** Most that the client waits before its first repetition; it doubles with each further one. */
const FIRST_BACKOFF_MS = 250;
/** Most that the client waits before any repetition. */
const MAX_BACKOFF_MS = 10_000;
/** Reasons for a refusal before anything began, for any call. */
const NOT_RUN = new Set(["QUEUE_FULL", "KEY_LIMITED", "RATE_LIMITED", "SERVER_BUSY", "NO_WORKER"]);
/** Reasons with a temporary status that a retry does not help. */
const LASTING = new Set([
  ...["CALL_FAILED", "TASK_FAILED", "CALL_TIMEOUT", "WORKER_LOST"],
  ...["DEPLOYMENT_STOPPED", "DEPLOYMENT_FAILED", "BUDGET_SPENT"],
]);
const PASSING_STATUS = new Set([429, 502, 503, 504]);

/** Codes of failed connections that a retry may help. */
const MAY_CONNECT = new Set([
  ...["ECONNREFUSED", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"],
]);

/** Whether a retry is safe and may succeed. */
export function mayRepeat(failed: unknown, repeatable: boolean): failed is DeploymentError {
  return failed instanceof DeploymentError && (repeatable ? mayPass(failed) : didNotRun(failed));
}

/** Milliseconds before the next attempt; `attempt` is the number of the failed one, from 0. */
export function pauseBefore({ retryAfterMs = 0 }: DeploymentError, attempt: number): number {
  const ceiling = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
  return retryAfterMs + Math.random() * ceiling;
}

/** Whether a retry of an idempotent request may succeed. */
function mayPass(failed: DeploymentError): boolean {
  if (failed instanceof UnreachableError) {
    return didNotRun(failed);
  }
  return (
    failed instanceof ConnectionLostError ||
    (PASSING_STATUS.has(failed.status ?? 0) && !LASTING.has(failed.reason ?? ""))
  );
}

/** Whether the request certainly did not run and a retry may succeed. */
function didNotRun(failed: DeploymentError): boolean {
  return failed instanceof UnreachableError
    ? codesOf(failed).some((code) => MAY_CONNECT.has(code))
    : NOT_RUN.has(failed.reason ?? "");
}

/** Waits; rejects with the signal's reason when it is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, ms);
    if (signal?.aborted) {
      leave();
    }
    signal?.addEventListener("abort", leave, { once: true });
  });
}
