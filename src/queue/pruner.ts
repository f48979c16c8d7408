import type { Storage } from "../storage/storage.ts";
import type { Log } from "./log.ts";
import { Timer } from "./timer.ts";

/** Tasks deleted at once: bounds how long the database is busy with it. */
const LIMIT = 1_000;
const EVERY_MS = 10_000;

/** Deletes finished tasks that have expired and those of deleted deployments, by timer, so on an idle server too. */
export function startPruner(options: {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}): Timer {
  const { storage, log, now } = options;
  const round = async (): Promise<void> => {
    while ((await storage.pruneFinished({ nowMs: now(), limit: LIMIT })) === LIMIT) {}
    while ((await storage.pruneDeleted({ nowMs: now(), limit: LIMIT })) > 0) {}
  };
  return new Timer(EVERY_MS, round, (err) =>
    log.error({ err }, "expired tasks, or those of deleted deployments, could not be deleted"),
  );
}
