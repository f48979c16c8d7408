/**
 * Exponential backoff: pauses that double until it works again. What many do at the same time has
 * full jitter, so that they do not come together: each pause is a random part of what it would be
 * (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). Browsers have this
 * file, too: it imports nothing.
 */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #part: () => number;
  #nextMs: number;

  /** `part` is from 0 to 1, how much of a pause is made; `Math.random` is full jitter. */
  constructor(firstMs: number, maxMs: number, part = () => 1) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#part = part;
    this.#nextMs = firstMs;
  }

  /** The longest that the next pause may be. */
  get nextMs(): number {
    return this.#nextMs;
  }

  /** Begins a pause: returns its milliseconds. */
  begin(): number {
    const pauseMs = this.#nextMs * this.#part();
    this.#nextMs = Math.min(this.#nextMs * 2, this.#maxMs);
    return pauseMs;
  }

  /** Resolves after the next pause, or when the signal aborts: the caller looks at it. */
  pause(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const over = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", over);
        resolve();
      };
      const timer = setTimeout(over, this.begin());
      signal.addEventListener("abort", over);
      if (signal.aborted) {
        over();
      }
    });
  }

  /** It worked: the next pause is the first one again. */
  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
