/**
 * Which requests may be sent again, and when.
 *
 * A request is one of two kinds. What is `repeatable` does the same whether it
 * is carried out once or twice: reading, and a submit or a retry with its
 * idempotency key. It is sent again when the connection breaks and when the server is
 * busy. Anything else might run twice, so it is sent again only where it
 * certainly did not run: nobody listened, or the server said that it was
 * refused before anything began (`NOT_RUN`).
 *
 * Between two attempts it waits as the server asks (`Retry-After`), or else
 * with exponential backoff and full jitter: Brooker, "Exponential Backoff And
 * Jitter", AWS Architecture Blog, 2015.
 */
import { codesOf } from "./breakage.ts";
import { ConnectionLostError, DeploymentError, UnreachableError } from "./errors.ts";

const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 10_000;
/** Refusals before anything began, whatever the call was. */
const NOT_RUN = new Set(["QUEUE_FULL", "RATE_LIMITED", "SERVER_BUSY", "NO_WORKER"]);
/** Answers with a passing status that will not pass by waiting. */
const LASTING = new Set([
  ...["CALL_FAILED", "TASK_FAILED", "CALL_TIMEOUT", "WORKER_LOST"],
  ...["DEPLOYMENT_STOPPED", "DEPLOYMENT_FAILED"],
]);
const PASSING_STATUS = new Set([429, 502, 503, 504]);

/** Where no connection came about, what may be different in a moment. */
const MAY_CONNECT = new Set([
  ...["ECONNREFUSED", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"],
]);

/** Whether the same request may be sent again, and may do better. */
export function mayRepeat(failed: unknown, repeatable: boolean): failed is DeploymentError {
  return failed instanceof DeploymentError && (repeatable ? mayPass(failed) : didNotRun(failed));
}

/** Milliseconds before the next attempt, of which the first failed is number 0. */
export function pauseBefore({ retryAfterMs = 0 }: DeploymentError, attempt: number): number {
  const ceiling = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
  return retryAfterMs + Math.random() * ceiling;
}

/** For what does no harm twice: whether the same again may do better. */
function mayPass(failed: DeploymentError): boolean {
  if (failed instanceof UnreachableError) {
    return didNotRun(failed);
  }
  return (
    failed instanceof ConnectionLostError ||
    (PASSING_STATUS.has(failed.status ?? 0) && !LASTING.has(failed.reason ?? ""))
  );
}

/** Certainly not begun, and the same again may do better. */
function didNotRun(failed: DeploymentError): boolean {
  return failed instanceof UnreachableError
    ? codesOf(failed).some((code) => MAY_CONNECT.has(code))
    : NOT_RUN.has(failed.reason ?? "");
}

/** Waits, unless the signal is aborted: then rejects with its reason. */
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
