import type { Task } from "../../tasks/task.ts";
import type { TaskKey } from "../storage.ts";

/** Beyond so many, tasks are read instead. */
const MAX_TASKS = 10_000;

/** A task that waits or runs, as it stands in its row. */
export interface LiveTask {
  readonly task: Task;
  readonly retentionMs: number;
}

/**
 * Tasks that wait or run, as they were stored or claimed by this connection,
 * so that they need not be read again until they end. Whatever changes the
 * row of such a task makes it forgotten here, or known anew; a transaction
 * that is rolled back, or a change by another program, makes all forgotten.
 * Who may write is not decided by what is remembered here, but by the row.
 */
export class LiveTasks {
  readonly #tasks = new Map<string, LiveTask>();

  remember(task: Task, retentionMs: number): void {
    if (this.#tasks.size < MAX_TASKS || this.#tasks.has(task.taskId)) {
      this.#tasks.set(task.taskId, { task, retentionMs });
    }
  }

  get({ deploymentId, taskId }: TaskKey): LiveTask | undefined {
    const found = this.#tasks.get(taskId);
    return found?.task.deploymentId === deploymentId ? found : undefined;
  }

  /** The task, which is forgotten by that. */
  take(key: TaskKey): LiveTask | undefined {
    const found = this.get(key);
    this.#tasks.delete(key.taskId);
    return found;
  }

  forgetAll(): void {
    this.#tasks.clear();
  }
}
