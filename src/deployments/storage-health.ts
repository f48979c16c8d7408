/** Whether the storage answers, as far as a deployment's own work tells. */
export class StorageHealth {
  /** What of the work failed last time and has not succeeded since. */
  readonly #failing = new Set<"claims" | "heartbeat">();

  get good(): boolean {
    return this.#failing.size === 0;
  }

  /**
   * Some work was answered, or was not. A claim that finds nothing writes
   * nothing, so on a full disk it succeeds: it says nothing of a heartbeat
   * that failed, which has written if any worker of the node has a lease.
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
