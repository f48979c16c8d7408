/**
 * Turns of streams at the channel. What the operating system has not taken yet is sent before
 * anything that comes later, results of other calls too; so pieces enter one after another, in the
 * order in which they came, while little of them is unsent.
 */

/** Bytes of pieces that may be unsent: a result behind them waits for a few milliseconds. */
const MAX_UNSENT_BYTES = 1024 * 1024;

interface Waiting {
  readonly bytes: number;
  readonly enter: () => void;
}

export class SendTurns {
  readonly #waiting: Waiting[] = [];
  #unsentBytes = 0;

  /**
   * Takes room for a piece; a promise where others are before it. Rejects with why the call was
   * aborted meanwhile.
   */
  enter(bytes: number, signal: AbortSignal): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#hasRoom(bytes)) {
      this.#unsentBytes += bytes;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const waiting = {
        bytes,
        enter: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal.reason);
        this.#next();
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(waiting);
    });
  }

  /** The operating system has taken these bytes of pieces. */
  left(bytes: number): void {
    this.#unsentBytes -= bytes;
    this.#next();
  }

  #next(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || !this.#hasRoom(first.bytes)) {
        return;
      }
      this.#waiting.shift();
      this.#unsentBytes += first.bytes;
      first.enter();
    }
  }

  /** One piece of any size has room where none is unsent. */
  #hasRoom(bytes: number): boolean {
    return this.#unsentBytes === 0 || this.#unsentBytes + bytes <= MAX_UNSENT_BYTES;
  }
}
