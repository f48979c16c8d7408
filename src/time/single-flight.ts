/**
 * Something that is done one at a time. Who asks for it while it is under way
 * may have come too late for that one, and gets the next, which all share who
 * ask meanwhile.
 */
export class SingleFlight implements AsyncDisposable {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #ended = false;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** Settles as one that began after this call does. Once disposed of, nothing is begun. */
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

  /** Returns when what is under way has settled. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await Promise.allSettled([this.#running]);
  }
}
