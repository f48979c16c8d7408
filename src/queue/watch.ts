/** The event stream of one task: its stored events, then new ones as they come. */
import { shuttingDown } from "../errors.ts";
import type { Storage, TaskKey } from "../storage/storage.ts";
import { eventLog, type TaskEvent } from "../tasks/event.ts";
import { isFinal } from "../tasks/task.ts";
import type { Changes } from "./changes.ts";

/** Stored events read at once: bounds what a watcher holds in memory. */
const MAX_EVENTS_PER_READ = 500;

export interface WatchEventsOptions {
  readonly storage: Storage;
  readonly changes: Changes;
  readonly key: TaskKey;
  readonly afterSequence: number;
  /** Ends the watch when the caller has gone. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Streams a task's events after `afterSequence`, until the task has ended or was
 * deleted. Changes only say when to read: every event comes from the storage, so
 * a watcher misses none and can resume at any sequence number.
 */
export async function* watchEvents(options: WatchEventsOptions): AsyncGenerator<TaskEvent> {
  const { storage, changes, key, afterSequence, signal } = options;
  let changed = Promise.withResolvers<void>();
  let closed = false;
  const wake = (): void => changed.resolve();
  const unlisten = changes.listen(key.taskId, {
    onChange: wake,
    onClose: () => {
      closed = true;
      wake();
    },
  });
  signal?.addEventListener("abort", wake);
  try {
    for (let last = afterSequence; !signal?.aborted; ) {
      changed = Promise.withResolvers();
      const parameters = { ...key, afterSequence: last, limit: MAX_EVENTS_PER_READ };
      const history = await storage.getHistory(parameters);
      if (history === undefined) {
        return;
      }
      // With more stored events to read, events after the last one read must wait.
      const full = history.stored.length === MAX_EVENTS_PER_READ;
      const until = full ? (history.stored.at(-1)?.sequence ?? last) : Number.POSITIVE_INFINITY;
      for (const event of eventLog(history, last)) {
        if (event.sequence <= until) {
          yield event;
          last = event.sequence;
        }
      }
      if (full) {
        continue;
      }
      if (isFinal(history.task.status)) {
        return;
      }
      if (closed) {
        throw shuttingDown();
      }
      await changed.promise;
    }
  } finally {
    unlisten();
    signal?.removeEventListener("abort", wake);
  }
}
