/** Heartbeats between the node and one worker: detects a blocked event loop. */

/**
 * Silence after a ping at which a worker counts as blocked and gets no new calls while others
 * do.
 */
const WORKER_HEARTBEAT_TIMEOUT_MS = 2_000;
/** Silence after a ping at which a worker gets new calls only where no other one has room. */
const SLOW_WORKER_HEARTBEAT_MS = 100;
/** Interval at which a node pings a worker that has calls. */
const WORKER_HEARTBEAT_INTERVAL_MS = 100;
/** Interval at which it is looked whether an idle worker has calls. */
const IDLE_WORKER_HEARTBEAT_INTERVAL_MS = 1_000;

interface WorkerHeartbeatOptions {
  /** An idle worker is not pinged. */
  readonly isBusy: () => boolean;
  readonly ping: () => void;
  /** The worker does not answer, or answers again after it was blocked. */
  readonly onChange: () => void;
}

/** Tracks whether a worker answers or user code blocks its event loop. */
export class WorkerHeartbeat implements Disposable {
  readonly #options: WorkerHeartbeatOptions;
  #timer: NodeJS.Timeout | undefined;
  /** True while the next look is that of an idle worker. */
  #isCalm = false;
  #unansweredSinceMs: number | undefined;
  /** True when it was told that the worker is blocked. */
  #isTold = false;

  constructor(options: WorkerHeartbeatOptions) {
    this.#options = options;
  }

  /** Starts the heartbeats; a second call does nothing. */
  start(): void {
    if (this.#timer === undefined) {
      this.#expect();
    }
  }

  /** The worker has a call. */
  wake(): void {
    if (this.#isCalm) {
      clearTimeout(this.#timer);
      this.#expect();
    }
  }

  get blocked(): boolean {
    return this.#silentForMs > WORKER_HEARTBEAT_TIMEOUT_MS;
  }

  /** True when it may be blocked: a call would begin sooner in another worker. */
  get slow(): boolean {
    return this.#silentForMs > SLOW_WORKER_HEARTBEAT_MS;
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
    this.#isCalm = false;
    clearTimeout(this.#timer);
  }

  get #silentForMs(): number {
    return this.#unansweredSinceMs === undefined ? 0 : performance.now() - this.#unansweredSinceMs;
  }

  #expect(): void {
    this.#isCalm = !this.#options.isBusy();
    this.#timer = setTimeout(
      () => this.#look(),
      this.#isCalm ? IDLE_WORKER_HEARTBEAT_INTERVAL_MS : WORKER_HEARTBEAT_INTERVAL_MS,
    );
  }

  #look(): void {
    this.#expect();
    if (this.#options.isBusy() && this.#unansweredSinceMs === undefined) {
      this.#unansweredSinceMs = performance.now();
      this.#options.ping();
    }
    if (this.blocked && !this.#isTold) {
      this.#isTold = true;
      this.#options.onChange();
    }
  }
}
