/**
 * Suspects: queued tasks whose worker died while they were in it. They are claimed apart from
 * others, one for each worker that can be had whole (`pool/isolation.ts`), so they keep nobody
 * waiting. Nothing is asked of the storage unless an endpoint is known to have one: from the end
 * of an attempt here, or from a pass of maintenance.
 */
import type { Log } from "../../log/log.ts";
import type { Pool, Slot } from "../../pool/pool.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { AttemptEnd, ClaimedTask, Storage } from "../../storage/storage.ts";
import type { RanAttempt } from "../completer.ts";
import type { Backlog } from "./backlog.ts";
import type { ClaimRecovery } from "./recovery.ts";

/** Suspects of an endpoint that wait for nothing but the rates of their keys. */
interface Resting {
  readonly count: number;
  /** Rings when the first of them may start. */
  readonly timer: NodeJS.Timeout;
}

/**
 * How long suspects rest before a worker is asked for all the same: others may have taken their places
 * meanwhile, or the rates may be those of another revision.
 */
const MAX_REST_MS = 60_000;

/** How often a worker is asked for again while none can be had: others come and go meanwhile. */
const ASK_AGAIN_MS = 500;

interface SuspectsOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "claimTasks">;
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
    this.#wakeUp(endpoint);
    this.#waiting.set(endpoint, (this.#waiting.get(endpoint) ?? 0) + 1);
    this.wake();
  }

  /**
   * Tells how many suspects of this endpoint wait or have just been claimed. False where those are known to
   * rest: no worker is asked for.
   */
  hint(endpoint: string, count: number): boolean {
    if (count <= (this.#resting.get(endpoint)?.count ?? 0)) {
      return false;
    }
    this.#wakeUp(endpoint);
    this.#waiting.set(endpoint, Math.max(count, this.#waiting.get(endpoint) ?? 0));
    this.wake();
    return true;
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
        const slot = pool.reserveAlone(endpoint, !backlog.isEmpty, this);
        if (slot === undefined) {
          this.#wakeLater();
          break;
        }
        const asked = this.#waiting.get(name) ?? 0;
        const { isFound, inMs } = await this.#claim(endpoint, slot);
        const known = this.#waiting.get(name) ?? 0;
        // What has come meanwhile may be what the claim has not seen.
        const left = isFound ? known - 1 : known - asked;
        this.#waiting.delete(name);
        if (inMs !== undefined && left <= 0) {
          this.#rest(name, known, inMs);
        }
        if (left > 0) {
          // Last: the next endpoint may have waited for longer.
          this.#waiting.set(name, left);
        }
      }
    }
    if (this.#waiting.size === 0) {
      pool.suspectsSettled(this);
    }
  }

  /** Suspects of this endpoint wait for the rates of their keys: no worker is asked for meanwhile. */
  #rest(endpoint: string, count: number, inMs: number): void {
    this.#wakeUp(endpoint);
    const ring = () => {
      this.#resting.delete(endpoint);
      this.hint(endpoint, count);
    };
    const timer = setTimeout(ring, Math.min(inMs, MAX_REST_MS)).unref();
    this.#resting.set(endpoint, { count, timer });
  }

  #wakeUp(endpoint: string): void {
    clearTimeout(this.#resting.get(endpoint)?.timer);
    this.#resting.delete(endpoint);
  }

  /** Claims one task for the slot; where none may start, says in how many milliseconds the next may. */
  async #claim(
    { name }: EndpointManifest,
    slot: Slot,
  ): Promise<{ readonly isFound: boolean; readonly inMs?: number | undefined }> {
    const { deploymentId, storage, backlog, recovery, now } = this.#options;
    const byKey = backlog.byKey(name);
    const claims = [{ endpoint: name, leaseId: slot.workerId, limit: 1, byKey }];
    const claiming = recovery.callBegins();
    try {
      const parameters = { deploymentId, nowMs: now(), claims, suspects: true };
      const {
        tasks: [claimed],
        later: [later],
        due = [],
        doubtful = [],
      } = await storage.claimTasks(parameters);
      recovery.doubt(doubtful);
      backlog.promoted(due);
      if (claimed === undefined) {
        slot.release();
        return { isFound: false, inMs: later?.inMs };
      }
      this.#options.start(claimed, slot);
      return { isFound: true };
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
