/**
 * Claim recovery: finds tasks that the storage claimed for this node while the
 * answer got lost, and returns them to the queue.
 *
 * A claim may fail and have been carried out all the same, or be carried out
 * after its error arrived (a commit on its way to a database whose connection
 * broke). Such a task is running under a lease that this node keeps alive, and
 * no worker runs it. So after an error the node asks the storage for a while
 * which attempts run under the leases concerned, and returns the unknown ones
 * to the queue.
 *
 * A claim still under way may have been given attempts that are not known here
 * yet. Those are checked again when every claim that was under way has ended.
 *
 * Each cell of the tasks is searched by itself: one that does not answer, or answers late, keeps nobody
 * from what another one has claimed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../log/log.ts";
import type { Attempt, Storage } from "../../storage/storage.ts";
import { HOME_CELL } from "../../tasks/id.ts";
import type { Attempts } from "../attempts.ts";
import type { Completer } from "../completer.ts";

/**
 * How long lost claims are looked for after an error, or after a look that was not answered, because
 * the call may still be carried out: longer than a storage lets one take.
 */
const LOST_CLAIM_SEARCH_MS = 30_000;
/** Interval at which lost claims are looked for after an error. */
const LOST_CLAIM_SEARCH_INTERVAL_MS = 1_000;

interface ClaimRecoveryOptions {
  readonly storage: Pick<Storage, "listAttempts" | "cells">;
  readonly attempts: Pick<Attempts, "has">;
  readonly completer: Pick<Completer, "giveBack" | "isUnderWay">;
  readonly log: Log;
}

/** Claims that began between two checks. */
class CallsUnderWay {
  #count = 0;
  #onEnd: (() => void) | undefined;

  begin(): this {
    this.#count += 1;
    return this;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) {
      this.#onEnd?.();
    }
  }

  /** Resolves when all have ended. No call may begin after this. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEnd = resolve;
      if (this.#count === 0) {
        resolve();
      }
    });
  }
}

export class ClaimRecovery implements AsyncDisposable {
  readonly #options: ClaimRecoveryOptions;
  #underWay = new CallsUnderWay();
  /** All calls that began before `#underWay` have ended. */
  #ended: Promise<unknown> = Promise.resolve();
  readonly #searches = new Map<number, Search>();
  readonly #stop = new AbortController();

  constructor(options: ClaimRecoveryOptions) {
    this.#options = options;
  }

  /** A call that may claim tasks begins. Call `end` when the tasks in its answer have started. */
  callBegins(): Pick<CallsUnderWay, "end"> {
    return this.#underWay.begin();
  }

  /** A call that may have claimed tasks for these leases has failed. */
  doubt(leaseIds: readonly string[]): void {
    if (leaseIds.length === 0) {
      return;
    }
    const { cells = [HOME_CELL] } = this.#options.storage;
    for (const cell of cells) {
      let search = this.#searches.get(cell);
      if (search === undefined) {
        const { signal } = this.#stop;
        search = new Search({
          ...this.#options,
          cell,
          signal,
          claimsEnd: () => this.#claimsEnd(),
        });
        this.#searches.set(cell, search);
      }
      search.begin(leaseIds);
    }
  }

  /** Stops checking. Closing the leases, which comes next, returns their attempts to the queue. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#searches.values()].map((search) => search.end()));
  }

  /** Resolves when every claim that is under way now has ended. */
  async #claimsEnd(): Promise<void> {
    const underWay = this.#underWay;
    this.#underWay = new CallsUnderWay();
    this.#ended = Promise.all([this.#ended, underWay.ended()]);
    await this.#ended;
  }
}

interface SearchOptions extends ClaimRecoveryOptions {
  readonly cell: number;
  readonly signal: AbortSignal;
  readonly claimsEnd: () => Promise<void>;
}

/** Looks for lost claims in one cell. */
class Search {
  readonly #options: SearchOptions;
  /** Leases to check, and until when. */
  readonly #doubtful = new Map<string, number>();
  #looking: Promise<void> | undefined;

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  begin(leaseIds: readonly string[]): void {
    this.#doubt(leaseIds);
    this.#looking ??= this.#look();
  }

  /** Resolves when it has ended, after its signal. */
  async end(): Promise<void> {
    await this.#looking;
  }

  #doubt(leaseIds: Iterable<string>): void {
    const untilMs = performance.now() + LOST_CLAIM_SEARCH_MS;
    for (const leaseId of leaseIds) {
      this.#doubtful.set(leaseId, untilMs);
    }
  }

  async #look(): Promise<void> {
    const { signal, log, cell } = this.#options;
    while (this.#doubtful.size > 0 && !signal.aborted) {
      const beganMs = performance.now();
      try {
        await this.#giveBack();
        for (const [leaseId, untilMs] of this.#doubtful) {
          if (untilMs < beganMs) {
            this.#doubtful.delete(leaseId);
          }
        }
      } catch (err) {
        // A call of before may still be on its way when the storage answers again.
        this.#doubt([...this.#doubtful.keys()]);
        log.warn({ err, cell }, "the attempts under the leases could not be looked up");
      }
      await sleep(LOST_CLAIM_SEARCH_INTERVAL_MS, undefined, { signal }).catch(() => {
        // Stopped: the loop ends.
      });
    }
    this.#looking = undefined;
  }

  async #giveBack(): Promise<void> {
    const { storage, attempts, completer, log, cell, claimsEnd } = this.#options;
    const isUnknown = (attempt: Attempt): boolean =>
      !attempts.has(attempt) && !completer.isUnderWay(attempt);
    const held = await storage.listAttempts({ leaseIds: [...this.#doubtful.keys()], cell });
    const unknown = held.filter(isUnknown);
    if (unknown.length === 0) {
      return;
    }
    await claimsEnd();
    for (const attempt of unknown.filter(isUnknown)) {
      log.warn({ ...attempt }, "a task was claimed by a call that failed; it goes back");
      completer.giveBack(attempt);
    }
  }
}
