/** Tracks whether the storage answers, from the outcome of a deployment's own requests. */
export class StorageHealth {
  /** The kinds of work whose last request failed. */
  readonly #failing = new Set<"claims" | "heartbeat">();

  get good(): boolean {
    return this.#failing.size === 0;
  }

  /**
   * Records the outcome of a request. A claim that finds nothing writes nothing, so
   * it succeeds on a full disk and does not clear a failed heartbeat. A heartbeat
   * writes if any worker of the node has a lease, so its success clears both.
   */
  heard(work: "claims" | "heartbeat", answers: boolean): void {
    if (!answers) {
      this.#failing.add(work);
    } else if (work === "heartbeat") {
      this.#failing.clear();
    } else {
      this.#failing.delete(work);
    }
  }
}
