/**
 * Group commit in front of the storage thread: batches calls and settles them.
 *
 * While one batch is being committed, all arriving calls form the next one.
 * Calls share the wait for the disk, without a timer and without a delay for a
 * single call. A batch of a certain size does not wait for the one before: this
 * side and the thread then work in parallel rather than in turns, which is
 * worth more than the cost of a batch.
 */
import type { Worker } from "node:worker_threads";
import type { OperationObserver } from "../storage.ts";
import { DiskFull, unavailable } from "../unavailable.ts";
import { type OperationCall, type Outcome, packOperations, unpackOutcomes } from "./packing.ts";

/** Calls that may wait for the database; more are refused rather than kept in memory. */
const MAX_PENDING_CALLS = 50_000;

/** Calls in one transaction: bounds how long a single one can take. */
const MAX_BATCH_CALLS = 2_000;

/**
 * Waiting calls that are sent at once: the thread stores them while the rest of the turn is
 * computed.
 */
const MIN_EAGER_BATCH_CALLS = 32;

/**
 * Batches sent to the thread: one that is being stored, and one that the thread can begin with
 * when it has.
 */
const MAX_BATCHES_UNDER_WAY = 2;

interface Call extends OperationCall {
  /** The operation's name for the observer; undefined when it is not reported. */
  readonly observedAs: string | undefined;
  /** The start, by `performance.now()`. */
  readonly begunMs: number;
  resolve(value: unknown): void;
  reject(err: unknown): void;
}

export class OperationBatcher {
  /** The thread that receives batches; without it, calls are refused. */
  thread: Pick<Worker, "postMessage"> | undefined;
  observer: OperationObserver | undefined;
  /** Why the thread is missing. */
  #lostFor: unknown;
  #waiting: Call[] = [];
  /** Sent batches, in the order in which they will be answered. */
  #underWay: Call[][] = [];
  #scheduled = false;

  /** @param observedAs its name for the observer; absent: it is not reported. */
  call(
    name: OperationCall["name"],
    parameters: OperationCall["parameters"],
    observedAs?: string,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = { name, parameters, observedAs, begunMs: performance.now(), resolve, reject };
      if (this.thread === undefined || this.#waiting.length >= MAX_PENDING_CALLS) {
        const waiting = `${this.#waiting.length} calls are waiting for the database`;
        this.#reject(call, unavailable(this.thread ? waiting : this.#lostFor));
        return;
      }
      this.#waiting.push(call);
      this.#schedule();
    });
  }

  /** Settles the oldest sent batch with its outcomes. */
  settle(packed: readonly unknown[]): void {
    const settled = this.#underWay.shift() ?? [];
    if (this.#isDue) {
      this.#send();
    }
    this.#sendIfIdle();
    let outcomes: Outcome[];
    try {
      outcomes = unpackOutcomes(settled, packed);
    } catch (err) {
      outcomes = settled.map(() => ({ error: String(err), temporary: true }));
    }
    const nowMs = performance.now();
    settled.forEach((call, index) => {
      const outcome = outcomes[index] ?? { error: "it has no outcome", temporary: false };
      if ("value" in outcome) {
        call.resolve(outcome.value);
        this.#tell(call, nowMs);
      } else {
        const { error, temporary, isFull = false } = outcome;
        const cause = isFull ? new DiskFull(error) : error;
        this.#reject(call, temporary ? unavailable(cause) : new Error(`${call.name}: ${error}`));
      }
    });
  }

  /** The thread has ended or could not start: rejects all calls. */
  lose(cause: unknown): void {
    this.thread = undefined;
    this.#lostFor = cause;
    const calls = [...this.#underWay.flat(), ...this.#waiting];
    this.#underWay = [];
    this.#waiting = [];
    for (const call of calls) {
      this.#reject(call, unavailable(cause));
    }
  }

  /**
   * Calls of one turn of the event loop share a transaction. They are sent at
   * its end, or earlier when there are many.
   */
  #schedule(): void {
    if (this.#isDue) {
      this.#send();
    } else if (this.#underWay.length === 0 && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => {
        this.#scheduled = false;
        this.#sendIfIdle();
      });
    }
  }

  /** Whether the waiting calls should be sent while another batch is under way. */
  get #isDue(): boolean {
    return (
      this.#waiting.length >= MIN_EAGER_BATCH_CALLS && this.#underWay.length < MAX_BATCHES_UNDER_WAY
    );
  }

  #sendIfIdle(): void {
    if (this.#underWay.length === 0 && this.#waiting.length > 0) {
      this.#send();
    }
  }

  #send(): void {
    this.#post(this.#waiting.splice(0, MAX_BATCH_CALLS));
  }

  /** Sends a batch. A call that cannot be cloned to the thread fails alone. */
  #post(batch: Call[]): void {
    try {
      this.thread?.postMessage(packOperations(batch));
    } catch (err) {
      const [first] = batch;
      if (first && batch.length === 1) {
        this.#reject(first, err);
      } else {
        for (const one of batch) {
          this.#post([one]);
        }
      }
      return;
    }
    this.#underWay.push(batch);
  }

  #reject(call: Call, err: unknown): void {
    call.reject(err);
    this.#tell(call, performance.now(), err);
  }

  #tell({ observedAs, begunMs }: Call, nowMs: number, err?: unknown): void {
    if (observedAs !== undefined) {
      this.observer?.(observedAs, nowMs - begunMs, err);
    }
  }
}
