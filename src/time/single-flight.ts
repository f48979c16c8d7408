/**
 * Single-flight: runs a piece of work one at a time. A call that arrives during
 * a run may be too late for it, so it gets the next run, which all such calls
 * share.
 */
export class SingleFlight implements AsyncDisposable {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #ended = false;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** Settles as a run that began after this call. Does nothing once disposed. */
  run(): Promise<void> {
    if (this.#ended) {
      return Promise.resolve();
    }
    if (this.#running === undefined) {
      this.#running = this.#work().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    const again = (): Promise<void> => {
      this.#next = undefined;
      return this.run();
    };
    this.#next ??= this.#running.then(again, again);
    return this.#next;
  }

  /** Returns when the current run has settled. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await Promise.allSettled([this.#running]);
  }
}
