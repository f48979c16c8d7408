/**
 * Whole workers for suspects: calls whose worker died while others were in it run again with
 * no other call beside them, so that what happens then is known to be their doing.
 *
 *   an empty worker      is closed to all others until its suspect has ended
 *   no empty worker      one more is asked for; where none comes, the least busy one is closed,
 *                        and its suspect begins when its calls have ended
 *
 * One worker stays open for others that wait. So where the only worker is empty, and others wait,
 * one more is asked for too, and the only one is taken when none comes within moments, but not
 * again for as long: neither waits for ever.
 */
import type { EndpointManifest } from "../protocol/manifest.ts";
import { type Slot, WorkerSlot } from "./calls/execution.ts";
import type { Worker } from "./worker.ts";

/** How long a suspect waits for a worker to become empty before one more is asked for. */
const MORE_AFTER_MS = 1_000;
/** The same while others wait too: longer than those do that a worker takes as soon as it is ready. */
const MORE_BESIDE_OTHERS_MS = 400;
/** How long a suspect waits for one more worker before one that is busy, or the only one, is closed. */
const EMPTY_AFTER_MS = 3_000;
/** How long one more worker is kept after the last suspect: others may follow. */
const MORE_KEPT_MS = 10_000;

interface SuspectRoomOptions {
  /** The workers that serve. */
  readonly workers: () => readonly Worker[];
  /** The number of workers that are wanted without suspects. */
  readonly size: () => number;
  /** True while a worker starts. */
  readonly isStarting: () => boolean;
  /** `more` may have changed. */
  readonly onChange: () => void;
  /** A slot of a mounted server was given back. */
  readonly onReleased?: () => void;
}

export class Isolation implements Disposable {
  readonly #options: SuspectRoomOptions;
  /** Since when a suspect waits, by `performance.now`. */
  #waitingSinceMs: number | undefined;
  /** The worker that takes no more calls, until a suspect has it. */
  #emptying: Worker | undefined;
  readonly #held = new Set<Worker>();
  /** Who asked for a worker and got none. */
  readonly #askers = new Set<object>();
  /** True when calls that nobody suspects have waited, until the suspects are through. */
  #isCrowded = false;
  #keptUntilMs = 0;
  #less: NodeJS.Timeout | undefined;

  constructor(options: SuspectRoomOptions) {
    this.#options = options;
  }

  /** The number of workers that are wanted beyond the size of the pool: one or none. */
  get more(): number {
    return this.#isNeeded() || performance.now() < this.#keptUntilMs ? 1 : 0;
  }

  /**
   * Takes a whole worker; undefined while none is free, and then the caller asks again.
   * `othersWait`: calls that nobody suspects may be waiting for a worker. `asker`: who is to say
   * that it is `settled`.
   */
  reserve(endpoint: EndpointManifest, othersWait: boolean, asker: object): Slot | undefined {
    const able = this.#options.workers().filter((one) => one.loaded && one.runs(endpoint));
    const found = this.#find(able, endpoint, othersWait);
    if (found === undefined) {
      this.#askers.add(asker);
      if (able.length > 0) {
        this.#waitingSinceMs ??= performance.now();
        const waitedMs = performance.now() - this.#waitingSinceMs;
        this.#isCrowded ||= waitedMs >= (othersWait ? MORE_BESIDE_OTHERS_MS : MORE_AFTER_MS);
        this.#empty(able);
      }
      this.#changed();
      return undefined;
    }
    this.#waitingSinceMs = undefined;
    this.#emptying?.capacity.open();
    this.#emptying = undefined;
    found.capacity.close();
    this.#held.add(found);
    this.#changed();
    return new WorkerSlot(found, endpoint, {
      onReleased: this.#options.onReleased,
      onOpen: () => {
        found.capacity.open();
        this.#held.delete(found);
        this.#isCrowded &&= this.#held.size > 0 || this.#waitingSinceMs !== undefined;
        this.#changed();
      },
    });
  }

  /** Calls that nobody suspects wait for a worker. */
  crowded(): void {
    if ((this.#held.size > 0 || this.#emptying) && !this.#isCrowded) {
      this.#isCrowded = true;
      this.#changed();
    }
  }

  /** No suspect of the asker waits any more. */
  settled(asker: object): void {
    this.#askers.delete(asker);
    if (this.#askers.size > 0) {
      return;
    }
    if (this.#waitingSinceMs !== undefined || this.#emptying) {
      this.#waitingSinceMs = undefined;
      this.#emptying?.capacity.open();
      this.#emptying = undefined;
      this.#isCrowded &&= this.#held.size > 0;
      this.#changed();
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#less);
  }

  get #isPatient(): boolean {
    const sinceMs = this.#waitingSinceMs;
    return (
      sinceMs === undefined ||
      this.#options.isStarting() ||
      performance.now() - sinceMs < EMPTY_AFTER_MS
    );
  }

  #find(
    able: readonly Worker[],
    endpoint: EndpointManifest,
    othersWait: boolean,
  ): Worker | undefined {
    const emptying = this.#emptying;
    if (emptying && able.includes(emptying) && isEmpty(emptying) && !emptying.isBlocked) {
      return emptying;
    }
    const open = able.filter(({ capacity }) => !capacity.isClosed);
    // The one that was being emptied is open to others instead.
    if (open.length > 1 || emptying || !othersWait) {
      return open.find((one) => isEmpty(one) && one.freeSlots(endpoint) > 0);
    }
    return undefined;
  }

  /** Closes the least busy worker, where no other one comes. */
  #empty(able: readonly Worker[]): void {
    if (this.#emptying?.loaded === false) {
      // One on another machine may come back with another process.
      this.#emptying.capacity.open();
      this.#emptying = undefined;
    }
    if (this.#emptying || this.#isPatient) {
      return;
    }
    const open = able.filter(
      ({ capacity, isBlocked, isDraining }) => !capacity.isClosed && !isBlocked && !isDraining,
    );
    const [least] = open.sort((a, b) => a.busyness - b.busyness);
    if (least) {
      this.#emptying = least;
      least.capacity.close();
    }
  }

  /** Suspects and others cannot go on beside each other. */
  #isNeeded(): boolean {
    const { workers, size } = this.#options;
    const serving = workers();
    const held = [...this.#held].filter((worker) => serving.includes(worker));
    const lacks = this.#waitingSinceMs !== undefined || (held.length > 0 && held.length >= size());
    return this.#isCrowded && lacks;
  }

  #changed(): void {
    if (this.#isNeeded()) {
      this.#keptUntilMs = performance.now() + MORE_KEPT_MS;
      clearTimeout(this.#less);
      this.#less = undefined;
      this.#options.onChange();
    } else if (this.#keptUntilMs > 0) {
      this.#less ??= setTimeout(() => {
        this.#less = undefined;
        this.#keptUntilMs = 0;
        this.#options.onChange();
      }, MORE_KEPT_MS).unref();
    }
  }
}

function isEmpty({ capacity, busyness }: Worker): boolean {
  return capacity.idle && busyness === 0;
}
