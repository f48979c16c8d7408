/**
 * How long the oldest call waits for others while a worker is free. The wait is halved for
 * each batch that nobody joined, down to none, so that callers who come one by one do not
 * wait in vain; a batch with company brings it back.
 */

/** A shorter wait counts as no wait: timers have no finer steps. */
const MIN_BATCH_WAIT_MS = 1;

export class BatchWait {
  readonly #maxMs: number;
  #ms: number;

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
    this.#ms = maxMs;
  }

  get ms(): number {
    return this.#ms;
  }

  /** A batch of this number of calls was formed. */
  formed(size: number): void {
    const halved = this.#ms / 2;
    this.#ms = size > 1 ? this.#maxMs : halved < MIN_BATCH_WAIT_MS ? 0 : halved;
  }
}
