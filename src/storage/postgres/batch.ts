/**
 * Makes batches of calls: while one batch is under way, all calls that arrive
 * form the next one. So the cost of a round trip and of the wait for the disk
 * is shared by as many calls as there are, without a timer, and without a
 * delay when there is only one.
 */
import { unavailable } from "../unavailable.ts";
import { isSilence, isUnavailable } from "./errors.ts";

/** Calls that may wait; more are refused rather than kept in memory. */
const MAX_WAITING = 50_000;

interface Waiting<Call, Answer> {
  readonly call: Call;
  resolve(answer: Answer): void;
  reject(err: unknown): void;
}

export interface BatchesOptions<Call, Answer> {
  /** Carries out a batch; answers each call, in their order. */
  readonly run: (calls: Call[]) => Promise<Answer[]>;
  /** Calls in one batch: bounds how long a single one can take. */
  readonly maxCalls: number;
}

export class CallBatcher<Call, Answer> {
  readonly #options: BatchesOptions<Call, Answer>;
  #waiting: Waiting<Call, Answer>[] = [];
  #underWay: Promise<void> | undefined;

  constructor(options: BatchesOptions<Call, Answer>) {
    this.#options = options;
  }

  /** Adds a call to the next batch. */
  add(call: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= MAX_WAITING) {
        reject(unavailable(new Error(`${MAX_WAITING} calls are waiting for the database`)));
        return;
      }
      this.#waiting.push({ call, resolve, reject });
      this.#underWay ??= this.#work();
    });
  }

  /** Carries out no more than the batch under way; resolves when that is done. */
  async close(): Promise<void> {
    this.#refuseWaiting(new Error("the storage has ended"));
    await this.#underWay;
  }

  async #work(): Promise<void> {
    // At the end of the turn, so that calls of one turn share a batch.
    await new Promise(setImmediate);
    while (this.#waiting.length > 0) {
      await this.#carryOut(this.#waiting.splice(0, this.#options.maxCalls));
    }
    this.#underWay = undefined;
  }

  /**
   * When one call of a batch is impossible, all are carried out one by one:
   * the others must not pay for it. When the database cannot be asked, all
   * fail at once, and when it is silent, also those that wait: each of them
   * would only wait as long.
   */
  async #carryOut(batch: readonly Waiting<Call, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.run(batch.map(({ call }) => call));
      for (const [index, { resolve }] of batch.entries()) {
        resolve(answers[index] as Answer);
      }
    } catch (err) {
      if (batch.length > 1 && !isUnavailable(err)) {
        for (const waiting of batch) {
          await this.#carryOut([waiting]);
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
