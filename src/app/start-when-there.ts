/** Starts a storage as soon as its database answers: it may be starting or failing over itself. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../log/log.ts";
import type { Storage } from "../storage/storage.ts";
import { DatabaseAway } from "../storage/unavailable.ts";

/** Pause before a database that did not answer is tried again. */
const DATABASE_RETRY_PAUSE_MS = 500;

/** Interval at which the log says what the start waits for. */
const DATABASE_WAIT_LOG_INTERVAL_MS = 5_000;

interface DatabaseWaitOptions {
  readonly log: Log;
  /** How long to wait altogether; 0 tries once. */
  readonly waitMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
  readonly pause?: (ms: number) => Promise<void>;
}

/** Rejects at once when the database answers and cannot be used, and with the last error when the time is over. */
export async function startWhenThere(
  storage: Pick<Storage, "start">,
  options: DatabaseWaitOptions,
): Promise<void> {
  const { log, waitMs, monotonicMs = () => performance.now(), pause = sleep } = options;
  const beganMs = monotonicMs();
  let saidMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      await storage.start();
      return;
    } catch (err) {
      const nowMs = monotonicMs();
      if (!(err instanceof DatabaseAway) || nowMs - beganMs >= waitMs) {
        throw err;
      }
      if (nowMs - saidMs >= DATABASE_WAIT_LOG_INTERVAL_MS) {
        saidMs = nowMs;
        const seconds = Math.round((beganMs + waitMs - nowMs) / 1_000);
        log.warn({}, `${err.message}; trying again for ${seconds} s`);
      }
      await pause(DATABASE_RETRY_PAUSE_MS);
    }
  }
}
