/**
 * The first load of a service that is served alone. It may take minutes, and callers may be there
 * before it: each is held until the service has loaded, or told after a while to come back.
 */
import { problem } from "../errors.ts";
import { within } from "../time/race.ts";

/**
 * How long a caller is held while the service loads: less than the timeouts of usual clients and
 * proxies, so that they hear the reason.
 */
const HELD_CALL_MS = 30_000;

/** When a caller that was held in vain may come back. */
const RETRY_AFTER_MS = 1_000;

export class FirstLoad {
  readonly #holdMs: number;
  readonly #loaded = Promise.withResolvers<void>();
  #isLoading = true;

  constructor(holdMs = HELD_CALL_MS) {
    this.#holdMs = holdMs;
    // Nobody may be there to hear of it.
    this.#loaded.promise.catch(() => {});
  }

  /** The service takes calls. */
  done(): void {
    this.#isLoading = false;
    this.#loaded.resolve();
  }

  /** The service cannot be loaded, or is not wanted any more: who waits is refused with this. */
  failed(refusal: Error): void {
    this.#loaded.reject(refusal);
  }

  /** Resolves when the service takes calls; rejects with NO_WORKER after a while. Undefined: it does. */
  held(): Promise<void> | undefined {
    return this.#isLoading ? this.#hold() : undefined;
  }

  #hold(): Promise<void> {
    return within(this.#loaded.promise, this.#holdMs, () => {
      const message = "the service is still loading: try again";
      throw problem("NO_WORKER", message, { retryAfterMs: RETRY_AFTER_MS });
    });
  }
}
