/** A log throttle: one line a minute for something that may go wrong many times a second. */

/** Least time between two lines of the same throttled message in the node's log. */
const LOG_THROTTLE_INTERVAL_MS = 60_000;

/** Logs each message at most once a minute, with the number of lines left out since. */
export class LogThrottle {
  readonly #log: (fields: object, message: string) => void;
  readonly #now: () => number;
  readonly #said = new Map<string, { readonly atMs: number; unsaid: number }>();

  /** `now` is a monotonic clock in milliseconds. */
  constructor(log: (fields: object, message: string) => void, now = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /** Logs the message, unless the same one was logged in the last minute. */
  say(fields: object, message: string): void {
    const nowMs = this.#now();
    const said = this.#said.get(message);
    if (said !== undefined && nowMs - said.atMs < LOG_THROTTLE_INTERVAL_MS) {
      said.unsaid += 1;
      return;
    }
    this.#said.set(message, { atMs: nowMs, unsaid: 0 });
    const unsaid = said?.unsaid ?? 0;
    this.#log({ ...fields, ...(unsaid > 0 && { unsaid }) }, message);
  }
}
