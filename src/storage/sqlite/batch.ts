/**
 * Calls on their way to the storage thread and back.
 *
 * Every call joins the next batch: while one batch is being committed, all that
 * arrives forms the following one, so the cost of waiting for the disk is shared
 * by as many calls as there are (group commit), without a timer and without a
 * delay when there is only one. Batches of a certain size do not wait: this side
 * and the thread then work at the same time rather than in turns, which is worth
 * more than what a batch costs.
 */
import type { Worker } from "node:worker_threads";
import type { OperationObserver } from "../storage.ts";
import { unavailable } from "../unavailable.ts";
import { type OperationCall, type Outcome, packOperations, unpackOutcomes } from "./packing.ts";

/** Calls that may wait for the database; more are refused rather than kept in memory. */
const MAX_PENDING = 50_000;

/** Calls in one transaction: bounds how long a single one can take. */
const MAX_BATCH = 2_000;

/** So many calls go at once: the thread stores them while the rest of the turn is computed. */
const EAGER_BATCH = 32;

/** One that is being stored, and one that the thread can begin with when it has. */
const MAX_BATCHES_UNDER_WAY = 2;

interface Call extends OperationCall {
  /** As the observer knows it; undefined where it is not told. */
  readonly toldAs: string | undefined;
  /** By `performance.now()`. */
  readonly begunMs: number;
  resolve(value: unknown): void;
  reject(err: unknown): void;
}

export class OperationBatcher {
  /** Where batches go; without, calls are refused. */
  thread: Pick<Worker, "postMessage"> | undefined;
  observer: OperationObserver | undefined;
  /** Why there is no thread. */
  #lostFor: unknown;
  #waiting: Call[] = [];
  /** Batches, in the order in which they were sent and will be answered. */
  #underWay: Call[][] = [];
  #scheduled = false;

  /** @param toldAs its name for the observer; absent: it is not told. */
  call(
    name: OperationCall["name"],
    parameters: OperationCall["parameters"],
    toldAs?: string,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = { name, parameters, toldAs, begunMs: performance.now(), resolve, reject };
      if (this.thread === undefined || this.#waiting.length >= MAX_PENDING) {
        const waiting = `${this.#waiting.length} calls are waiting for the database`;
        this.#reject(call, unavailable(this.thread ? waiting : this.#lostFor));
        return;
      }
      this.#waiting.push(call);
      this.#schedule();
    });
  }

  /** The outcomes of the batch that was sent first. */
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
        const { error, temporary } = outcome;
        this.#reject(call, temporary ? unavailable(error) : new Error(`${call.name}: ${error}`));
      }
    });
  }

  /** There is no thread any more, or still none, for this reason: rejects all calls. */
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

  /** Calls of one turn share a transaction; they leave at the end of it, or before when they are many. */
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

  /** What waits is worth a batch of its own, also beside another. */
  get #isDue(): boolean {
    return this.#waiting.length >= EAGER_BATCH && this.#underWay.length < MAX_BATCHES_UNDER_WAY;
  }

  #sendIfIdle(): void {
    if (this.#underWay.length === 0 && this.#waiting.length > 0) {
      this.#send();
    }
  }

  #send(): void {
    this.#post(this.#waiting.splice(0, MAX_BATCH));
  }

  /** A call that cannot be copied to the thread fails alone. */
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

  #tell({ toldAs, begunMs }: Call, nowMs: number, err?: unknown): void {
    if (toldAs !== undefined) {
      this.observer?.(toldAs, nowMs - begunMs, err);
    }
  }
}
