/** A cache of live tasks in the storage thread. */
import type { Task } from "../../tasks/task.ts";
import type { TaskKey } from "../storage.ts";

/** Live tasks that the thread keeps in memory; further ones are read from the database. */
const MAX_LIVE_TASKS = 10_000;

/** A queued or running task with the fields of its row. */
export interface LiveTask {
  readonly task: Task;
  readonly retentionMs: number;
  /** The token that submitted it; empty: none. */
  readonly tokenId: string;
}

/**
 * Queued and running tasks as this connection stored or claimed them, so that
 * they need not be read again before they end. Every change to a task's row
 * drops or replaces its entry; a rollback, or a change by another program,
 * clears the cache. Fencing never relies on this cache: the row decides which
 * attempt may write.
 */
export class LiveTasks {
  readonly #tasks = new Map<string, LiveTask>();

  remember(live: LiveTask): void {
    const { taskId } = live.task;
    if (this.#tasks.size < MAX_LIVE_TASKS || this.#tasks.has(taskId)) {
      this.#tasks.set(taskId, live);
    }
  }

  get({ deploymentId, taskId }: TaskKey): LiveTask | undefined {
    const found = this.#tasks.get(taskId);
    return found?.task.deploymentId === deploymentId ? found : undefined;
  }

  /** Removes and returns a task. */
  take(key: TaskKey): LiveTask | undefined {
    const found = this.get(key);
    this.#tasks.delete(key.taskId);
    return found;
  }

  forgetAll(): void {
    this.#tasks.clear();
  }
}
