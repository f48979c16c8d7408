/** Calls that were assigned to a worker, until it says that they have arrived. */

/** How long a worker has to say that a call has arrived. */
const ACCEPT_TIMEOUT_MS = 5_000;

export class AssignedCalls {
  /** When each was assigned, by `performance.now`. */
  readonly #sinceMs = new Map<number, number>();

  assigned(ids: Iterable<number>): void {
    const nowMs = performance.now();
    for (const id of ids) {
      this.#sinceMs.set(id, nowMs);
    }
  }

  /** They have arrived, or ended. */
  arrived(ids: Iterable<number>): void {
    for (const id of ids) {
      this.#sinceMs.delete(id);
    }
  }

  /** Removes and returns those that should have arrived by now. */
  takeOverdue(nowMs: number): number[] {
    const overdue = [...this.#sinceMs].flatMap(([id, sinceMs]) =>
      nowMs - sinceMs >= ACCEPT_TIMEOUT_MS ? [id] : [],
    );
    this.arrived(overdue);
    return overdue;
  }
}
