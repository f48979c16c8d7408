/** The pruner: a periodic job that deletes expired tasks and the tasks of deleted deployments. */
import type { Log } from "../../log/log.ts";
import type { Storage } from "../../storage/storage.ts";
import { Timer } from "../../time/timer.ts";

/** Tasks deleted at once: bounds how long the database is busy with it. */
const MAX_PRUNED_TASKS = 1_000;
/** Interval at which finished tasks are deleted whose retention has ended. */
const TASK_PRUNE_INTERVAL_MS = 20_000;
/** Interval at which tasks of deleted deployments are deleted, which nobody can see any more. */
const DELETED_TASK_PRUNE_INTERVAL_MS = 60_000;

/** Starts the pruner. It runs by timer, so on an idle server too; dispose of it to stop. */
export function startPruner(options: {
  readonly storage: Storage;
  readonly log: Log;
  readonly now: () => number;
}): AsyncDisposable {
  const { storage, log, now } = options;
  const finished = async (): Promise<void> => {
    while (
      (await storage.pruneFinished({ nowMs: now(), limit: MAX_PRUNED_TASKS })) === MAX_PRUNED_TASKS
    ) {}
  };
  const deleted = async (): Promise<void> => {
    while ((await storage.pruneDeleted({ nowMs: now(), limit: MAX_PRUNED_TASKS })) > 0) {}
  };
  const failed = (err: unknown): void =>
    log.error({ err }, "expired tasks, or those of deleted deployments, could not be deleted");
  const timers = [
    new Timer(TASK_PRUNE_INTERVAL_MS, finished, failed),
    new Timer(DELETED_TASK_PRUNE_INTERVAL_MS, deleted, failed),
  ];
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(timers.map((timer) => timer[Symbol.asyncDispose]()));
    },
  };
}
