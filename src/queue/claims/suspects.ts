/**
 * Suspects: queued tasks whose worker died while they were in it. They are claimed apart from
 * others, one for each worker that can be had whole (`pool/isolation.ts`), so they keep nobody
 * waiting. Nothing is asked of the storage unless an endpoint is known to have one: from the end
 * of an attempt here, or from a pass of maintenance. Where keys have limits, the storage says first
 * whether these let one start: a worker is emptied for nothing otherwise.
 */
import type { Log } from "../../log/log.ts";
import type { Pool, Slot } from "../../pool/pool.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { AttemptEnd, ClaimedTask, Storage } from "../../storage/storage.ts";
import type { RanAttempt } from "../completer.ts";
import type { Backlog } from "./backlog.ts";
import type { ClaimRecovery } from "./recovery.ts";

/** Suspects of an endpoint that all wait for the limits of their keys. */
interface Resting {
  readonly count: number;
  /** Rings when they are looked at again. Undefined: when something ends, or maintenance finds them. */
  readonly timer: NodeJS.Timeout | undefined;
  /** It rings within moments. */
  readonly isSoon: boolean;
}

/** Pause before suspects are tried again when no worker was free, or their keys were at their limits. */
const ASK_AGAIN_MS = 500;

interface SuspectsOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "claimTasks" | "nextSuspect">;
  readonly pool: Pick<Pool, "reserveAlone" | "suspectsSettled">;
  readonly recovery: ClaimRecovery;
  readonly backlog: Pick<Backlog, "byKey" | "find" | "isEmpty" | "promoted">;
  readonly log: Log;
  readonly now: () => number;
  /** Starts what was claimed, or fails it; releases the slot in the end. */
  start(claimed: ClaimedTask, slot: Slot): void;
}

export class Suspects implements AsyncDisposable {
  readonly #options: SuspectsOptions;
  /** Endpoints that may have suspects waiting, and how many are known of. */
  readonly #waiting = new Map<string, number>();
  readonly #resting = new Map<string, Resting>();
  #looking: Promise<void> | undefined;
  #again = false;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: SuspectsOptions) {
    this.#options = options;
  }

  /** A task of this endpoint went back to the queue as a suspect. */
  came(endpoint: string): void {
    this.#waiting.set(endpoint, (this.#waiting.get(endpoint) ?? 0) + 1);
    this.wake();
  }

  /**
   * Tells how many suspects of this endpoint wait or have just been claimed. False where those are known to
   * rest: they are looked at, and no worker is to be started for them before one of them may start.
   */
  hint(endpoint: string, count: number): boolean {
    this.#waiting.set(endpoint, Math.max(count, this.#waiting.get(endpoint) ?? 0));
    this.wake();
    return !this.#resting.has(endpoint);
  }

  /** Something has ended or changed at this endpoint, so that the limits of a key may let a suspect start. */
  freed(endpoint: string): void {
    const resting = this.#resting.get(endpoint);
    if (resting?.isSoon === false) {
      // Not at once: where tasks end all the time, their places go to others of the key.
      this.#rest(endpoint, resting.count, ASK_AGAIN_MS);
    }
  }

  /** A worker may have become free. */
  wake(): void {
    if (this.#stopped || this.#waiting.size === 0) {
      return;
    }
    if (this.#looking) {
      this.#again = true;
      return;
    }
    this.#looking = this.#look()
      .catch((err: unknown) => {
        this.#options.log.error({ err }, "suspected tasks could not be claimed");
        this.#wakeLater();
      })
      .finally(() => {
        this.#looking = undefined;
        if (this.#again) {
          this.#again = false;
          this.wake();
        }
      });
  }

  /** Stops claiming; resolves when no claim is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#looking;
    for (const name of [...this.#resting.keys()]) {
      this.#wakeUp(name);
    }
  }

  async #look(): Promise<void> {
    // The slots that one message from a worker freed go to others first.
    await Promise.resolve();
    const { pool, backlog } = this.#options;
    for (const name of [...this.#waiting.keys()]) {
      const endpoint = backlog.find(name);
      if (endpoint === undefined) {
        this.#waiting.delete(name);
      }
      while (endpoint && this.#waiting.has(name) && !this.#stopped) {
        const asked = this.#waiting.get(name) ?? 0;
        if (!(await this.#mayStart(name, asked))) {
          this.#looked(name, asked);
          continue;
        }
        if (this.#stopped) {
          return;
        }
        const slot = pool.reserveAlone(endpoint, !backlog.isEmpty, this);
        if (slot === undefined) {
          this.#wakeLater();
          break;
        }
        this.#looked(name, (await this.#claim(endpoint, slot)) ? 1 : asked);
      }
    }
    if (this.#waiting.size === 0) {
      pool.suspectsSettled(this);
    }
  }

  /** So many have been claimed, or looked at. What has come meanwhile is what nobody has seen. */
  #looked(endpoint: string, count: number): void {
    const left = (this.#waiting.get(endpoint) ?? 0) - count;
    this.#waiting.delete(endpoint);
    if (left > 0) {
      // Last: the next endpoint may have waited for longer.
      this.#waiting.set(endpoint, left);
    }
  }

  /** Whether the limits of its key let a suspect start. A worker is emptied for it, and not for one that rests. */
  async #mayStart(endpoint: string, count: number): Promise<boolean> {
    const { deploymentId, storage, backlog, now } = this.#options;
    const byKey = backlog.byKey(endpoint);
    if (byKey?.concurrency === undefined && byKey?.rate === undefined) {
      return true;
    }
    const inMs = await storage.nextSuspect({ deploymentId, endpoint, nowMs: now(), byKey });
    this.#wakeUp(endpoint);
    if (inMs !== undefined && inMs > 0) {
      this.#rest(endpoint, count, inMs);
    }
    return inMs === 0;
  }

  /** Suspects of this endpoint wait for the limits of their keys. */
  #rest(endpoint: string, count: number, inMs: number): void {
    this.#wakeUp(endpoint);
    const ring = (): void => void this.hint(endpoint, count);
    const timer = inMs < Number.POSITIVE_INFINITY ? setTimeout(ring, inMs).unref() : undefined;
    this.#resting.set(endpoint, { count, timer, isSoon: inMs <= ASK_AGAIN_MS });
  }

  #wakeUp(endpoint: string): void {
    clearTimeout(this.#resting.get(endpoint)?.timer);
    this.#resting.delete(endpoint);
  }

  /** Claims one task for the slot; false where it found none. */
  async #claim({ name }: EndpointManifest, slot: Slot): Promise<boolean> {
    const { deploymentId, storage, backlog, recovery, now } = this.#options;
    const byKey = backlog.byKey(name);
    const claims = [{ endpoint: name, leaseId: slot.workerId, limit: 1, byKey }];
    const claiming = recovery.callBegins();
    try {
      const parameters = { deploymentId, nowMs: now(), claims, suspects: true };
      const {
        tasks: [claimed],
        due = [],
        doubtful = [],
      } = await storage.claimTasks(parameters);
      recovery.doubt(doubtful);
      backlog.promoted(due);
      if (claimed === undefined) {
        slot.release();
        return false;
      }
      this.#options.start(claimed, slot);
      return true;
    } catch (err) {
      slot.release();
      recovery.doubt([slot.workerId]);
      throw err;
    } finally {
      claiming.end();
    }
  }

  #wakeLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.wake();
    }, ASK_AGAIN_MS).unref();
  }
}

/** True when a task that went back to the queue with this end is a suspect. */
export function isSuspect(end: AttemptEnd, ran: RanAttempt | undefined): boolean {
  const failed = end.status === "queued" && end.failed;
  const isNew = end.status === "worker_lost" || (end.status === "queued" && end.suspect === true);
  return isNew || (ran?.alone === true && !failed);
}
