/**
 * Exponential backoff for restarting workers: 100 ms at first and after a worker
 * that had taken calls, doubling to 30 s while workers end without any call.
 */
import { Backoff } from "../time/backoff.ts";

/** Pause before a worker that ended is replaced; it doubles with each end in a row. */
const WORKER_RESTART_FIRST_PAUSE_MS = 100;
/** Longest pause before a worker that ended is replaced. */
const WORKER_RESTART_MAX_PAUSE_MS = 30_000;
/** Life of a worker after which it counts as healthy: its end begins a new series. */
const WORKER_HEALTHY_AFTER_MS = 30_000;
/** Ends of workers in a row that count as a crash loop. */
const MIN_CRASH_LOOP_ENDS = 3;

/** How a worker ended that nobody told to. */
export interface RecentEnd {
  readonly reason: string;
  /** Workers end again and again. */
  readonly isLoop: boolean;
  /** The next is started after a pause. */
  readonly isPausing: boolean;
}

export class RestartBackoff {
  readonly #restart: () => void;
  readonly #pauses = new Backoff(WORKER_RESTART_FIRST_PAUSE_MS, WORKER_RESTART_MAX_PAUSE_MS);
  #timer: NodeJS.Timeout | undefined;
  #series = 0;
  #last: { readonly reason: string; readonly atMs: number } | undefined;

  /** `restart` is called when a pause is over. */
  constructor(restart: () => void) {
    this.#restart = restart;
  }

  /** True during a pause, in which no worker is started. */
  get pausing(): boolean {
    return this.#timer !== undefined;
  }

  /** The last reason of a crash loop; undefined outside of one. */
  get crashLoop(): string | undefined {
    const { recent } = this;
    return recent?.isLoop ? recent.reason : undefined;
  }

  /** The last end of a worker that is not long ago, and whether it is one of many; undefined: none is. */
  get recent(): RecentEnd | undefined {
    const last = this.#last;
    const isRecent =
      last !== undefined && Date.now() - last.atMs < WORKER_HEALTHY_AFTER_MS + this.#pauses.nextMs;
    return isRecent
      ? {
          reason: last.reason,
          isLoop: this.#series >= MIN_CRASH_LOOP_ENDS,
          isPausing: this.pausing,
        }
      : undefined;
  }

  /** Why the last worker ended or could not start; undefined when none has. */
  get lastFault(): string | undefined {
    return this.#last?.reason;
  }

  /** A worker ended unexpectedly. `used`: it had taken a call, so the service loads. */
  ended(reason: string, { used, livedMs }: { used: boolean; livedMs: number }): void {
    if (used || livedMs > WORKER_HEALTHY_AFTER_MS) {
      this.#pauses.reset();
      this.#series = 0;
    }
    this.#note(reason);
  }

  /** A worker could not be started. */
  failed(reason: string): void {
    this.#note(reason);
  }

  /** Resets the backoff for another revision. */
  reset(): void {
    this.cancel();
    this.#pauses.reset();
    this.#series = 0;
    this.#last = undefined;
  }

  /** Cancels the pending restart. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #note(reason: string): void {
    this.#series += 1;
    this.#last = { reason, atMs: Date.now() };
    if (this.#timer === undefined) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#restart();
      }, this.#pauses.begin());
    }
  }
}
