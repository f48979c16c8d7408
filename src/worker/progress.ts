/** Reports of one call's progress: at most one per interval, and always the last one. */
import type { Channel } from "./channel.ts";

const INTERVAL_MS = 50;
const MAX_MESSAGE_LENGTH = 1024;

/**
 * A report that comes when the interval is over leaves at once, also out of a
 * function that blocks the event loop; one that comes earlier waits for the
 * timer, and is replaced by the next.
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
      message: message === undefined ? "" : String(message).slice(0, MAX_MESSAGE_LENGTH),
    };
    const dueInMs = this.#sentAtMs + INTERVAL_MS - performance.now();
    if (dueInMs <= 0) {
      this.flush();
    } else {
      this.#timer ??= setTimeout(() => this.flush(), dueInMs);
    }
  }

  /** Sends the report that waits, if any. */
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
