/**
 * Calls of apis that are to run alone in a worker, because one of them may have ended two workers.
 * Each waits for a worker that can be had whole (`pool/isolation.ts`), in order.
 */
import type { Pool, Slot } from "../../pool/pool.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";

/** How often a worker is asked for again while none can be had: others come and go meanwhile. */
const ASK_AGAIN_MS = 500;

interface Waiting {
  readonly endpoint: EndpointManifest;
  readonly give: (slot: Slot | undefined) => void;
}

interface LoneCallsOptions {
  readonly pool: Pick<Pool, "reserveAlone" | "suspectsSettled">;
  /** True while other calls wait for a slot. */
  othersWait(): boolean;
}

export class LoneCalls {
  readonly #options: LoneCallsOptions;
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LoneCallsOptions) {
    this.#options = options;
  }

  /** Takes a whole worker; undefined if none is free in time, or the caller has gone. */
  async slot(
    endpoint: EndpointManifest,
    { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
  ): Promise<Slot | undefined> {
    const { promise, resolve } = Promise.withResolvers<Slot | undefined>();
    const waiting: Waiting = { endpoint, give: resolve };
    const leave = (): void => {
      this.#waiting.delete(waiting);
      resolve(undefined);
    };
    const timer = setTimeout(leave, withinMs);
    signal.addEventListener("abort", leave, { once: true });
    this.#waiting.add(waiting);
    if (signal.aborted) {
      leave();
    } else {
      this.wake();
    }
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", leave);
      this.#settle();
    }
  }

  /** A worker may have become free. */
  wake(): void {
    for (const waiting of this.#waiting) {
      const slot = this.#options.pool.reserveAlone(
        waiting.endpoint,
        this.#options.othersWait(),
        this,
      );
      if (slot === undefined) {
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined;
          this.wake();
        }, ASK_AGAIN_MS).unref();
        return;
      }
      this.#waiting.delete(waiting);
      waiting.give(slot);
    }
  }

  /** Nothing will become free: all give up. */
  close(): void {
    for (const waiting of this.#waiting) {
      waiting.give(undefined);
    }
  }

  #settle(): void {
    if (this.#waiting.size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#options.pool.suspectsSettled(this);
    }
  }
}
