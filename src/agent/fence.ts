/**
 * The fence of a worker that is cut off from its node: it ends the worker's calls before the node
 * gives them to others, so that no task runs at once in two places.
 *
 *   open      calls are taken
 *   closed    no new calls                     8/15 of the silence limit
 *   aborting  calls under way are aborted      10/15
 *   over      all are killed, the session ends 13/15, so that they have ended after 14/15
 *
 * Of a limit of more than 3 minutes, what is left after each is that of 3 minutes: 84, 60 and 24 s.
 *
 * It is counted from when the last acknowledged heartbeat was *sent*: the node heard it later, so
 * the node's own limit ends later. An acknowledgement opens the fence again, unless it is over.
 * The clock is monotonic and this machine's alone, so what time it is on either side is of no
 * account. A process that was frozen looks at the fence before it takes or sends anything.
 */

/** The share of the silence limit after which no calls are taken. */
const CLOSED_AFTER = 8 / 15;
/** The share of the silence limit after which calls are aborted. */
const ABORTING_AFTER = 10 / 15;
/** The share of the silence limit after which calls are killed. */
const OVER_AFTER = 13 / 15;

/** How often the fence is looked at, as a part of the silence limit: four times in a second. */
const LOOKS_PER_LIMIT = 60;
/** The longest limit of which these are shares: ending calls takes no longer for a longer one. */
const MAX_SHARED_MS = 180_000;

interface FenceOptions {
  /** After this silence the node gives the worker's calls to others. */
  readonly silenceMs: number;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** When what opened the session was sent, by that clock. */
  readonly sinceMs: number;
  /** Calls have to be aborted. */
  onAbort(): void;
  /** Calls have to be killed. Nothing opens the fence after that. */
  onOver(): void;
}

export class Fence implements Disposable {
  readonly #options: FenceOptions;
  readonly #timer: NodeJS.Timeout;
  /** When the last acknowledged heartbeat was sent. */
  #sinceMs: number;
  #silenceMs: number;
  #isAborting = false;
  #isOver = false;

  constructor(options: FenceOptions) {
    this.#options = options;
    this.#sinceMs = options.sinceMs;
    this.#silenceMs = options.silenceMs;
    const sharedMs = Math.min(options.silenceMs, MAX_SHARED_MS);
    this.#timer = setInterval(() => this.look(), sharedMs / LOOKS_PER_LIMIT);
  }

  /** The node that goes on with the session has another limit. */
  limit(silenceMs: number): void {
    this.#silenceMs = silenceMs;
  }

  /** A heartbeat that was sent at this time was acknowledged. */
  acknowledged(sentAtMs: number): void {
    this.look();
    if (!this.#isOver && sentAtMs > this.#sinceMs) {
      this.#sinceMs = sentAtMs;
      this.#isAborting = this.#share() >= ABORTING_AFTER;
    }
  }

  /** True while new calls may begin. */
  get isOpen(): boolean {
    this.look();
    return !this.#isOver && this.#share() < CLOSED_AFTER;
  }

  /** True when the node may have given the calls to others. */
  get isOver(): boolean {
    this.look();
    return this.#isOver;
  }

  /** Compares the clock with the limits. */
  look(): void {
    if (this.#isOver) {
      return;
    }
    const share = this.#share();
    if (share >= OVER_AFTER) {
      this.#isOver = true;
      this[Symbol.dispose]();
      this.#options.onOver();
    } else if (share >= ABORTING_AFTER && !this.#isAborting) {
      this.#isAborting = true;
      this.#options.onAbort();
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** The silence so far, as a part of the limit, or of its last 3 minutes; below 0 before those. */
  #share(): number {
    const sharedMs = Math.min(this.#silenceMs, MAX_SHARED_MS);
    const silentMs = this.#options.now() - this.#sinceMs;
    return (silentMs - (this.#silenceMs - sharedMs)) / sharedMs;
  }
}
