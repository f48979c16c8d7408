/** A longer line counts as several. */
const LENGTH_OF_ONE = 512;
/** A burst may have as many lines as come in so many seconds. */
const BURST_SECONDS = 10;
/** How long drops are counted before they are told. */
const TELL_AFTER_MS = 1_000;

/** Lets lines of a log through at a rate, and says how many it did not. */
export class LogRateLimit implements Disposable {
  readonly #perSecond: number;
  readonly #onDropped: (message: string) => void;
  #left: number;
  #filledMs = performance.now();
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(perSecond: number, onDropped: (message: string) => void) {
    this.#perSecond = perSecond;
    this.#onDropped = onDropped;
    this.#left = perSecond * BURST_SECONDS;
  }

  /** False when a line of this length is too much. */
  admit(length: number): boolean {
    const nowMs = performance.now();
    const filled = this.#left + ((nowMs - this.#filledMs) / 1000) * this.#perSecond;
    this.#filledMs = nowMs;
    this.#left = Math.min(filled, this.#perSecond * BURST_SECONDS);
    const cost = Math.max(1, length / LENGTH_OF_ONE);
    if (this.#left >= cost) {
      this.#left -= cost;
      return true;
    }
    this.#dropped += 1;
    this.#timer ??= setTimeout(() => this.#tell(), TELL_AFTER_MS);
    return false;
  }

  /** Tells what was dropped last. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#tell();
  }

  #tell(): void {
    this.#timer = undefined;
    if (this.#dropped > 0) {
      this.#onDropped(
        `${this.#dropped} lines dropped: the limit is ${this.#perSecond} a second in the long run`,
      );
      this.#dropped = 0;
    }
  }
}
