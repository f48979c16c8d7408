/**
 * What the calls of apis used on this node, summed up in memory and flushed every few seconds: a
 * row for each deployment, day, endpoint and token, instead of a write for each call. A node that is
 * killed loses what it has not flushed.
 */
import type { Log } from "../../log/log.ts";
import { dayOf } from "../../storage/days.ts";
import type { UnitAmounts, UsageStorage, UsedByCalls } from "../../storage/hosting/usage.ts";
import { Timer } from "../../time/timer.ts";

/** Interval of the flushes: what a node that is killed loses at most. */
const USAGE_FLUSH_INTERVAL_MS = 10_000;

/** Sums kept until the next flush. With more, it is at once; while it fails, further ones are lost. */
const MAX_SUMS = 5_000;

/** What one call adds. */
export type CallUse = Omit<UsedByCalls, "day">;

interface CallUsageOptions {
  readonly storage: Pick<UsageStorage, "addUsage">;
  /** A name of this start of this node, which no other has. */
  readonly recorder: string;
  readonly now: () => number;
  readonly log: Log;
}

export class CallUsage implements AsyncDisposable {
  readonly #options: CallUsageOptions;
  readonly #timer: Timer;
  #sums = new Map<string, UsedByCalls>();
  /** What is being flushed, or was and may not have been stored. */
  #flushing: readonly UsedByCalls[] = [];
  #sequence = 0;
  #flushed: Promise<void> | undefined;

  constructor(options: CallUsageOptions) {
    this.#options = options;
    this.#timer = new Timer(
      USAGE_FLUSH_INTERVAL_MS,
      () => this.flush(),
      (err) => options.log.warn({ err }, "usage of calls could not be stored: it is tried again"),
    );
  }

  add(use: CallUse): void {
    const { deploymentId, endpoint, tokenId } = use;
    const day = dayOf(this.#options.now());
    const key = `${deploymentId} ${day} ${tokenId} ${endpoint}`;
    const before = this.#sums.get(key);
    if (before === undefined && this.#sums.size >= MAX_SUMS) {
      this.flush().catch(() => undefined);
      if (this.#sums.size >= MAX_SUMS) {
        return;
      }
    }
    this.#sums.set(key, before ? sumOf(before, use) : { ...use, day });
  }

  /**
   * Stores what was used since the last time. What an earlier flush may not have stored goes first,
   * under its number, by which the storage knows whether it has.
   */
  async flush(): Promise<void> {
    this.#flushed ??= this.#flush().finally(() => {
      this.#flushed = undefined;
    });
    await this.#flushed;
  }

  /** Stores the rest. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer[Symbol.asyncDispose]();
    try {
      await this.flush();
      await this.flush();
    } catch (err) {
      this.#options.log.warn({ err }, "the last usage of calls could not be stored");
    }
  }

  async #flush(): Promise<void> {
    const { storage, recorder, now } = this.#options;
    if (this.#flushing.length === 0) {
      if (this.#sums.size === 0) {
        return;
      }
      this.#flushing = [...this.#sums.values()];
      this.#sums = new Map();
      this.#sequence += 1;
    }
    const rows = this.#flushing;
    await storage.addUsage({ recorder, sequence: this.#sequence, day: dayOf(now()), rows });
    this.#flushing = [];
  }
}

function sumOf(before: UsedByCalls, use: CallUse): UsedByCalls {
  return {
    ...before,
    calls: before.calls + use.calls,
    runMs: before.runMs + use.runMs,
    gpuMs: before.gpuMs + use.gpuMs,
    bytesIn: before.bytesIn + use.bytesIn,
    bytesOut: before.bytesOut + use.bytesOut,
    units: sumOfUnits(before.units, use.units),
  };
}

/** In a map, because a unit may be called like what every object inherits, such as `constructor`. */
function sumOfUnits(before: UnitAmounts, more: UnitAmounts): UnitAmounts {
  const reported = Object.entries(more);
  if (reported.length === 0) {
    return before;
  }
  const sums = new Map(Object.entries(before));
  for (const [unit, amount] of reported) {
    sums.set(unit, (sums.get(unit) ?? 0) + amount);
  }
  return Object.fromEntries(sums);
}
