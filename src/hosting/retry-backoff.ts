/**
 * Exponential backoff for roll-outs: why a roll-out failed on this node, and when
 * it is retried. Retries are needed because the cause may be the service, the
 * storage or the machine. What is at fault by itself, such as a lock that is no lock, is not
 * retried: it waits for something else to be wanted.
 */
import { EnvironmentError } from "../artifacts/environments/environment.ts";
import { RevisionFailed } from "../deployments/rollout.ts";
import { Backoff } from "../time/backoff.ts";
import type { RolloutFailure } from "./status.ts";

/**
 * Pause before a revision that could not be brought in is tried again; it doubles with each
 * failure.
 */
const DEPLOYMENT_RETRY_FIRST_PAUSE_MS = 5_000;
/** Longest pause before a revision that could not be brought in is tried again. */
const DEPLOYMENT_RETRY_MAX_PAUSE_MS = 5 * 60_000;

export class RetryBackoff implements Disposable {
  readonly failure: RolloutFailure;
  /** The key of the failed roll-out; undefined when the pause is over. */
  #key: string | undefined;
  readonly #pauses: Backoff;
  /** Undefined: it is not retried. */
  readonly #timer: NodeJS.Timeout | undefined;

  /** `retry` is called when the pause is over, which is twice that of `before`. */
  constructor(
    key: string,
    err: unknown,
    options: { readonly before: RetryBackoff | undefined; retry(): void },
  ) {
    const { before, retry } = options;
    this.failure = {
      message: err instanceof Error ? err.message : String(err),
      lines: err instanceof RevisionFailed ? err.lines : [],
    };
    this.#key = key;
    this.#pauses = before
      ? before.#pauses
      : new Backoff(DEPLOYMENT_RETRY_FIRST_PAUSE_MS, DEPLOYMENT_RETRY_MAX_PAUSE_MS);
    if (err instanceof EnvironmentError && err.isFinal) {
      return;
    }
    this.#timer = setTimeout(() => {
      this.#key = undefined;
      retry();
    }, this.#pauses.begin());
  }

  /** True when it is too early to retry this key. */
  forbids(key: string): boolean {
    return this.#key === key;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
