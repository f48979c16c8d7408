import type { Readable } from "node:stream";

/**
 * Reads from a stream no faster than a rate: what was spent beyond it is
 * waited for with the stream paused, so that whoever writes into it waits too.
 */
export class ThrottledStream implements Disposable {
  readonly #stream: Readable;
  readonly #perSecond: number;
  #left: number;
  #filledMs = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** So much a second; what is not spent is kept for a second. */
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

  /** Waits for nothing any more. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stream.resume();
  }
}
