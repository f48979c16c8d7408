/**
 * Group commit: while one batch runs, all arriving calls form the next one.
 * Calls share the cost of a round trip and of the wait for the disk, without a
 * timer and without a delay for a single call.
 */
import { unavailable } from "../unavailable.ts";
import { isSilence, isUnavailable } from "./errors.ts";

/** Calls that may wait for a batch; more are refused rather than kept in memory. */
const MAX_WAITING_CALLS = 50_000;

interface Waiting<Call, Answer> {
  readonly call: Call;
  resolve(answer: Answer): void;
  reject(err: unknown): void;
}

interface BatchesOptions<Call, Answer> {
  /**
   * Runs a batch; returns one answer per call, in order. With `repeated`, a part of it may have
   * been carried out before.
   */
  readonly run: (calls: Call[], repeated: boolean) => Promise<Answer[]>;
  /** Calls per batch: bounds how long one can take. */
  readonly maxCalls: number;
  /** Batches under way at a time. Default 1: what waits becomes one batch. */
  readonly maxBatches?: number;
  /** Whether `repeated` changes what `run` does, so that also a lone call runs again. Default false. */
  readonly heedsRepetition?: boolean;
}

export class CallBatcher<Call, Answer> {
  readonly #options: BatchesOptions<Call, Answer>;
  #waiting: Waiting<Call, Answer>[] = [];
  /** How many take calls: a call that finds fewer than there may be begins one. */
  #workers = 0;
  readonly #underWay = new Set<Promise<void>>();

  constructor(options: BatchesOptions<Call, Answer>) {
    this.#options = options;
  }

  /** Adds a call to the next batch. */
  add(call: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING_CALLS) {
        reject(unavailable(new Error(`${MAX_WAITING_CALLS} calls are waiting for the database`)));
        return;
      }
      this.#waiting.push({ call, resolve, reject });
      if (this.#workers < (this.#options.maxBatches ?? 1)) {
        this.#begin();
      }
    });
  }

  /** Refuses waiting calls; resolves when the running batch is done. */
  async close(): Promise<void> {
    this.#refuseWaiting(new Error("the storage has ended"));
    await Promise.all(this.#underWay);
  }

  #begin(): void {
    this.#workers += 1;
    const work = this.#work().finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }

  async #work(): Promise<void> {
    // At the end of the event loop's turn, so that calls of one turn share a batch.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      await this.#carryOut(this.#waiting.splice(0, this.#options.maxCalls));
    }
    this.#workers -= 1;
  }

  /**
   * When a call of a batch fails by its own fault, all run one by one, so that the others still
   * succeed, and as calls that may have been carried out before. When the database cannot be
   * reached, all fail at once. When it does not respond, the waiting calls fail too: each would
   * only wait as long.
   */
  async #carryOut(batch: readonly Waiting<Call, Answer>[], repeated = false): Promise<void> {
    try {
      const answers = await this.#options.run(
        batch.map(({ call }) => call),
        repeated,
      );
      for (const [index, { resolve }] of batch.entries()) {
        resolve(answers[index] as Answer);
      }
    } catch (err) {
      const runsAgain = batch.length > 1 || this.#options.heedsRepetition === true;
      if (!repeated && runsAgain && !isUnavailable(err)) {
        for (const waiting of batch) {
          await this.#carryOut([waiting], true);
        }
        return;
      }
      for (const { reject } of batch) {
        reject(err);
      }
      if (isSilence(err)) {
        this.#refuseWaiting(err);
      }
    }
  }

  #refuseWaiting(cause: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) {
      reject(unavailable(cause));
    }
  }
}
