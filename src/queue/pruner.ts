import type { Log } from "../log/log.ts";
import type { Storage } from "../storage/storage.ts";
import { Timer } from "../time/timer.ts";

/** Tasks deleted at once: bounds how long the database is busy with it. */
const LIMIT = 1_000;
const EVERY_MS = 20_000;
/** Nobody can see these any more. */
const DELETED_EVERY_MS = 60_000;

/** Deletes finished tasks that have expired and those of deleted deployments, by timer, so on an idle server too. */
export function startPruner(options: {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}): AsyncDisposable {
  const { storage, log, now } = options;
  const finished = async (): Promise<void> => {
    while ((await storage.pruneFinished({ nowMs: now(), limit: LIMIT })) === LIMIT) {}
  };
  const deleted = async (): Promise<void> => {
    while ((await storage.pruneDeleted({ nowMs: now(), limit: LIMIT })) > 0) {}
  };
  const failed = (err: unknown): void =>
    log.error({ err }, "expired tasks, or those of deleted deployments, could not be deleted");
  const timers = [
    new Timer(EVERY_MS, finished, failed),
    new Timer(DELETED_EVERY_MS, deleted, failed),
  ];
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(timers.map((timer) => timer[Symbol.asyncDispose]()));
    },
  };
}
