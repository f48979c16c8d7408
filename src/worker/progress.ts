/** A rate limit for the progress of one call: one report per interval, and always the last one. */
import type { Channel } from "./channel.ts";

/** Least time between two messages of progress of one call. */
const PROGRESS_SEND_INTERVAL_MS = 50;
/** Text of a report of progress. */
const MAX_PROGRESS_MESSAGE_CHARACTERS = 1024;

/**
 * A report after the interval is sent at once, even from a function that blocks the
 * event loop. An earlier one waits for the timer, and the next one replaces it.
 */
export class ProgressReporter {
  readonly #channel: Channel;
  readonly #id: number;
  #sentAtMs = Number.NEGATIVE_INFINITY;
  #waiting: { readonly fraction: number; readonly message: string } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(channel: Channel, id: number) {
    this.#channel = channel;
    this.#id = id;
  }

  report(fraction: number, message: unknown): void {
    if (typeof fraction !== "number" || Number.isNaN(fraction)) {
      return;
    }
    this.#waiting = {
      fraction: Math.min(1, Math.max(0, fraction)),
      message:
        message === undefined ? "" : String(message).slice(0, MAX_PROGRESS_MESSAGE_CHARACTERS),
    };
    const dueInMs = this.#sentAtMs + PROGRESS_SEND_INTERVAL_MS - performance.now();
    if (dueInMs <= 0) {
      this.flush();
    } else {
      this.#timer ??= setTimeout(() => this.flush(), dueInMs);
    }
  }

  /** Sends the pending report, if any. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      this.#waiting = undefined;
      this.#sentAtMs = performance.now();
      this.#channel.send({ type: "progress", id: this.#id, ...waiting });
    }
  }
}
