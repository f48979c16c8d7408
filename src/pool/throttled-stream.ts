import type { Readable } from "node:stream";

/**
 * Back-pressure on a stream by a token bucket: when more was spent than the rate
 * allows, the stream is paused until the bucket has filled, so that its writer
 * waits too.
 */
export class ThrottledStream implements Disposable {
  readonly #stream: Readable;
  readonly #perSecond: number;
  #left: number;
  #filledMs = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** `perSecond` is the rate and the size of the bucket, in the unit of `spend`. */
  constructor(stream: Readable, perSecond: number) {
    this.#stream = stream;
    this.#perSecond = perSecond;
    this.#left = perSecond;
  }

  spend(amount: number): void {
    const nowMs = performance.now();
    const filled = this.#left + ((nowMs - this.#filledMs) / 1000) * this.#perSecond;
    this.#filledMs = nowMs;
    this.#left = Math.min(filled, this.#perSecond) - amount;
    if (this.#left < 0 && this.#timer === undefined) {
      this.#stream.pause();
      this.#timer = setTimeout(
        () => {
          this.#timer = undefined;
          this.#stream.resume();
        },
        (-this.#left / this.#perSecond) * 1000,
      );
    }
  }

  /** Ends the throttling and resumes the stream. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stream.resume();
  }
}
