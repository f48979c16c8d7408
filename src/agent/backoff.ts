/** Exponential backoff with full jitter, so that workers of a node that restarts do not come together. */
import { setTimeout as sleep } from "node:timers/promises";

/** The longest first pause before a worker tries to reach its platform again. */
const FIRST_RECONNECT_PAUSE_MS = 100;
/** The longest pause before a worker tries to reach its platform again. */
const MAX_RECONNECT_PAUSE_MS = 2_000;

export class Backoff {
  readonly #random: () => number;
  #longestMs = FIRST_RECONNECT_PAUSE_MS;

  /** `random` is from 0 to 1. */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** The next pause in milliseconds. */
  next(): number {
    const pauseMs = this.#random() * this.#longestMs;
    this.#longestMs = Math.min(this.#longestMs * 2, MAX_RECONNECT_PAUSE_MS);
    return pauseMs;
  }

  /** Resolves after the next pause, or when the signal aborts. */
  async pause(signal: AbortSignal): Promise<void> {
    await sleep(this.next(), undefined, { signal }).catch(() => {
      // Who waits looks at the signal.
    });
  }

  /** It worked: the next pause is a short one. */
  reset(): void {
    this.#longestMs = FIRST_RECONNECT_PAUSE_MS;
  }
}
