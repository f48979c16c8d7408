/**
 * Finds the tasks that the storage gave to this node without its knowing.
 *
 * A call that claims tasks may fail and have been carried out all the same,
 * or be carried out after its error arrived (a commit on the way to a
 * database whose connection broke). Such a task runs under a lease that this
 * node keeps alive, and nobody runs it. So after an error the storage is
 * asked, for a while, what runs under the leases concerned; what is not known
 * here goes back to the queue.
 *
 * A call under way may have given attempts that are not known here yet. They
 * are looked at again when every call that was under way has ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../log/log.ts";
import type { Attempt, Storage } from "../storage/storage.ts";
import type { Attempts } from "./attempts.ts";

/** How long after an error a call may still be carried out: longer than a storage lets one take. */
const SUSPECT_MS = 30_000;
const LOOK_EVERY_MS = 1_000;

export interface ClaimRecoveryOptions {
  readonly storage: Storage;
  readonly attempts: Attempts;
  readonly log: Log;
}

/** Calls that began between two looks. */
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

  /** Resolves when all have ended; from now on none may begin. */
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
  /** Leases to look at, and until when. */
  readonly #suspects = new Map<string, number>();
  readonly #stop = new AbortController();
  #looking: Promise<void> | undefined;

  constructor(options: ClaimRecoveryOptions) {
    this.#options = options;
  }

  /** A call begins that may claim tasks; it ends when those that it was answered have started. */
  callBegins(): Pick<CallsUnderWay, "end"> {
    return this.#underWay.begin();
  }

  /** A call that may have claimed tasks for these leases has failed. */
  suspect(leaseIds: readonly string[]): void {
    const untilMs = performance.now() + SUSPECT_MS;
    for (const leaseId of leaseIds) {
      this.#suspects.set(leaseId, untilMs);
    }
    this.#looking ??= this.#look();
  }

  /** Looks no more: the leases are about to be closed, which returns what is under them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#suspects.size > 0 && !signal.aborted) {
      const beganMs = performance.now();
      try {
        await this.#giveBack();
        for (const [leaseId, untilMs] of this.#suspects) {
          if (untilMs < beganMs) {
            this.#suspects.delete(leaseId);
          }
        }
      } catch (err) {
        this.#options.log.warn({ err }, "the attempts under the leases could not be looked up");
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => {
        // Stopped: the loop ends.
      });
    }
    this.#looking = undefined;
  }

  async #giveBack(): Promise<void> {
    const { storage, attempts, log } = this.#options;
    const isUnknown = (attempt: Attempt): boolean => !attempts.knows(attempt);
    const held = await storage.listAttempts({ leaseIds: [...this.#suspects.keys()] });
    const unknown = held.filter(isUnknown);
    if (unknown.length === 0) {
      return;
    }
    const underWay = this.#underWay;
    this.#underWay = new CallsUnderWay();
    await underWay.ended();
    for (const attempt of unknown.filter(isUnknown)) {
      log.warn({ ...attempt }, "a task was claimed by a call that failed; it goes back");
      attempts.giveBack(attempt);
    }
  }
}
