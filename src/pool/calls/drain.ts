/**
 * A worker with calls in it that went on for a grace period after their abort. Nothing but the end
 * of the worker ends such a call, and that would end the calls beside it. So their ends are told,
 * and the worker drains: it takes no more calls while they run, and is ended when nothing else is
 * left in it, when it does not answer for a grace period, or when one of them has gone on for its
 * `abortGrace`. If they end by themselves first, the worker goes on as before.
 */

interface DrainedWorker {
  /** The number of calls under way. */
  busyness(): number;
  /** True while it does not answer. */
  isBlocked(): boolean;
  /** Kills the worker because of one execution; its other executions end as displaced. */
  sacrifice(message: string): void;
  /** `isDraining` has changed. */
  onDraining(): void;
}

export class Drain {
  readonly #worker: DrainedWorker;
  readonly #graceMs: number;
  /** By the ids of the calls: when each ends the worker, at the latest. */
  readonly #limits = new Map<number, NodeJS.Timeout>();
  /** Why the worker is ended for them. */
  #message = "";
  #blocked: NodeJS.Timeout | undefined;

  constructor(graceMs: number, worker: DrainedWorker) {
    this.#graceMs = graceMs;
    this.#worker = worker;
  }

  get isDraining(): boolean {
    return this.#limits.size > 0;
  }

  /** Lets a call go on that its abort did not end. False where the worker is to be ended instead. */
  hold(callId: number, limitMs: number, message: string): boolean {
    if (this.#worker.busyness() === this.#limits.size + 1 || this.#worker.isBlocked()) {
      return false;
    }
    this.#message ||= message;
    this.#limits.set(
      callId,
      setTimeout(() => this.#worker.sacrifice(message), limitMs),
    );
    if (this.#limits.size === 1) {
      this.#worker.onDraining();
    }
    return true;
  }

  /** A call has ended. */
  ended(callId: number): void {
    if (!this.isDraining) {
      return;
    }
    clearTimeout(this.#limits.get(callId));
    if (this.#limits.delete(callId) && !this.isDraining) {
      this.clear();
      this.#worker.onDraining();
      return;
    }
    // The other ends of the same message come first.
    setImmediate(() => {
      if (this.isDraining && this.#worker.busyness() === this.#limits.size) {
        this.#worker.sacrifice(this.#message);
      }
    });
  }

  /** The worker does not answer, or answers again. */
  answering(): void {
    clearTimeout(this.#blocked);
    if (this.isDraining && this.#worker.isBlocked()) {
      this.#blocked = setTimeout(() => this.#worker.sacrifice(this.#message), this.#graceMs);
    }
  }

  /** The worker has ended, or goes on. */
  clear(): void {
    clearTimeout(this.#blocked);
    for (const limit of this.#limits.values()) {
      clearTimeout(limit);
    }
    this.#limits.clear();
    this.#message = "";
  }
}
