/**
 * When workers that ended are replaced: quickly when a call was the reason,
 * and with growing pauses when that happens again and again without one.
 */

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 30_000;
/** A worker that lived so long was healthy: its end begins a new series. */
const HEALTHY_AFTER_MS = 30_000;
/** Ends in a row that are no accident any more. */
const CRASH_LOOP = 3;

export class RestartBackoff {
  readonly #restart: () => void;
  #pauseMs = FIRST_PAUSE_MS;
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

  /** Why the workers end again and again; undefined when they do not. */
  get crashLoop(): string | undefined {
    const since = this.#last && Date.now() - this.#last.atMs;
    const recent = since !== undefined && since < HEALTHY_AFTER_MS + this.#pauseMs;
    return recent && this.#series >= CRASH_LOOP ? this.#last?.reason : undefined;
  }

  /** How the last worker ended, or why it could not start; undefined when none has. */
  get lastFault(): string | undefined {
    return this.#last?.reason;
  }

  /** A worker has ended that nobody had told to. An end during or after a call is the call's doing. */
  ended(reason: string, { used, livedMs }: { used: boolean; livedMs: number }): void {
    if (used || livedMs > HEALTHY_AFTER_MS) {
      this.#pauseMs = FIRST_PAUSE_MS;
      this.#series = 0;
    }
    this.#note(reason);
  }

  /** A worker could not be started. */
  failed(reason: string): void {
    this.#note(reason);
  }

  /** Another revision: what happened to the one before says nothing of it. */
  reset(): void {
    this.cancel();
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#series = 0;
    this.#last = undefined;
  }

  /** Restarts nothing; for when the pool closes. */
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
      }, this.#pauseMs);
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    }
  }
}
