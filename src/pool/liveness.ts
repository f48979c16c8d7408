/** A worker that answers no ping for so long gets no new calls while others do. */
const UNRESPONSIVE_MS = 2_000;
const PING_EVERY_MS = 1_000;

export interface LivenessOptions {
  /** Nobody needs to know while it has nothing to do. */
  readonly isBusy: () => boolean;
  readonly ping: () => void;
  /** It answers again after it was blocked. */
  readonly onUnblocked: () => void;
}

/** Whether a worker answers, or user code blocks its event loop. */
export class Liveness implements Disposable {
  readonly #options: LivenessOptions;
  #pings: NodeJS.Timeout | undefined;
  #unansweredSinceMs: number | undefined;

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** Begins to look; again is harmless. */
  start(): void {
    this.#pings ??= setInterval(() => this.#ping(), PING_EVERY_MS);
  }

  get blocked(): boolean {
    return (
      this.#unansweredSinceMs !== undefined &&
      Date.now() - this.#unansweredSinceMs > UNRESPONSIVE_MS
    );
  }

  /** It answered. */
  pong(): void {
    const wasBlocked = this.blocked;
    this.#unansweredSinceMs = undefined;
    if (wasBlocked) {
      this.#options.onUnblocked();
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#pings);
  }

  #ping(): void {
    if (this.#options.isBusy() && this.#unansweredSinceMs === undefined) {
      this.#unansweredSinceMs = Date.now();
      this.#options.ping();
    }
  }
}
