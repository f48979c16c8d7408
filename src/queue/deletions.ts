/**
 * Deletion of tasks that callers ask for, before their time. The storage deletes; this node forgets
 * what it remembers of them, and tells other nodes to. Whoever waits for one is told that it is gone.
 */
import { problem } from "../errors.ts";
import type { DeleteOutcome, Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { notFound, type TaskQuestion, type Tasks } from "./tasks.ts";
import type { Changes } from "./waits/changes.ts";

interface DeletionsOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "deleteTasks">;
  readonly now: () => number;
  readonly tasks: Tasks;
  readonly changes: Changes;
  /** Cancels a task that waits, or aborts one that runs. */
  cancel(question: TaskQuestion): Promise<unknown>;
}

export class Deletions {
  readonly #options: DeletionsOptions;

  constructor(options: DeletionsOptions) {
    this.#options = options;
  }

  /**
   * Deletes a task; with `abort`, also one that runs, once it has ended. Rejects with TASK_NOT_FOUND
   * or TASK_ALREADY_STARTED.
   */
  async delete(question: TaskQuestion, abort: boolean): Promise<void> {
    const task = await this.#options.tasks.find(question);
    if (abort && task.status === "running") {
      await this.#stop(question);
    }
    const [outcome] = await this.deleteAll([task.taskId]);
    if (outcome === "not_found") {
      throw notFound(task.taskId);
    }
    if (outcome === "running") {
      const metadata = { task_id: task.taskId };
      const message = `task ${task.taskId} is running: cancel it first, or add abort=true to stop it`;
      throw problem("TASK_ALREADY_STARTED", message, { metadata });
    }
  }

  /** Deletes those of the tasks that do not run; answers in their order. */
  async deleteAll(taskIds: readonly string[]): Promise<DeleteOutcome[]> {
    const { deploymentId, storage, now, tasks, changes } = this.#options;
    const outcomes = await storage.deleteTasks({ deploymentId, taskIds, nowMs: now() });
    for (const [at, taskId] of taskIds.entries()) {
      if (outcomes[at] === "deleted") {
        tasks.forget(taskId);
        changes.publish(taskId);
      }
    }
    return outcomes;
  }

  /** Ends a task that runs, unless it has ended by itself. */
  async #stop(question: TaskQuestion): Promise<void> {
    try {
      await this.#options.cancel(question);
    } catch (err) {
      const task: Task = await this.#options.tasks.find(question);
      if (task.status === "running") {
        throw err;
      }
    }
  }
}
