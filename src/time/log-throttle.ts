/** Lines in the log of something that may go wrong many times a second. */

const EVERY_MS = 60_000;

export class LogThrottle {
  readonly #log: (fields: object, message: string) => void;
  readonly #now: () => number;
  readonly #said = new Map<string, { readonly atMs: number; unsaid: number }>();

  /** `now` in milliseconds, of a clock that only goes forward. */
  constructor(log: (fields: object, message: string) => void, now = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /** Logs it, unless the same message was logged in the last minute. */
  say(fields: object, message: string): void {
    const nowMs = this.#now();
    const said = this.#said.get(message);
    if (said !== undefined && nowMs - said.atMs < EVERY_MS) {
      said.unsaid += 1;
      return;
    }
    this.#said.set(message, { atMs: nowMs, unsaid: 0 });
    const unsaid = said?.unsaid ?? 0;
    this.#log({ ...fields, ...(unsaid > 0 && { unsaid }) }, message);
  }
}
