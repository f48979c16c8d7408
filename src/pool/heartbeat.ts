/** Heartbeats between the node and one worker: detects a blocked event loop. */

/**
 * Silence after a ping at which a worker counts as blocked and gets no new calls while others
 * do.
 */
const WORKER_HEARTBEAT_TIMEOUT_MS = 2_000;
/** Interval at which a node pings a worker that has calls. */
const WORKER_HEARTBEAT_INTERVAL_MS = 1_000;

export interface WorkerHeartbeatOptions {
  /** An idle worker is not pinged. */
  readonly isBusy: () => boolean;
  readonly ping: () => void;
  /** The worker does not answer, or answers again after it was blocked. */
  readonly onChange: () => void;
}

/** Tracks whether a worker answers or user code blocks its event loop. */
export class WorkerHeartbeat implements Disposable {
  readonly #options: WorkerHeartbeatOptions;
  #pings: NodeJS.Timeout | undefined;
  #unansweredSinceMs: number | undefined;
  /** True when it was told that the worker is blocked. */
  #isTold = false;

  constructor(options: WorkerHeartbeatOptions) {
    this.#options = options;
  }

  /** Starts the heartbeats; a second call does nothing. */
  start(): void {
    this.#pings ??= setInterval(() => this.#ping(), WORKER_HEARTBEAT_INTERVAL_MS);
  }

  get blocked(): boolean {
    return (
      this.#unansweredSinceMs !== undefined &&
      Date.now() - this.#unansweredSinceMs > WORKER_HEARTBEAT_TIMEOUT_MS
    );
  }

  /** The worker answered a ping. */
  pong(): void {
    const wasBlocked = this.blocked;
    this.#unansweredSinceMs = undefined;
    this.#isTold = false;
    if (wasBlocked) {
      this.#options.onChange();
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
    if (this.blocked && !this.#isTold) {
      this.#isTold = true;
      this.#options.onChange();
    }
  }
}
