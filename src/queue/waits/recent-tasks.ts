/** The cache of recently finished tasks, with their results. */
import { SlotMap } from "../../collections/slots.ts";
import { isBare, type Payload } from "../../protocol/messages.ts";
import type { Task } from "../../tasks/task.ts";

/** A finished task. `result` is undefined unless the task succeeded, or a server answered that it failed. */
export interface FinishedTask {
  readonly task: Task;
  readonly result: Payload | undefined;
}

/** Result that the cache of finished tasks takes: most callers fetch within a second. */
const MAX_CACHED_RESULT_CHARACTERS = 16_384;
/** Finished tasks in the cache. */
const MAX_CACHED_TASKS = 2_000;

/**
 * Caches the tasks that finished last on this node, so that the caller who
 * waited for one is answered without asking the storage. A finished task never
 * changes, so entries go only when somebody deletes their task; their number and
 * size are bounded. Nearly every result is fetched once, so fetching removes the entry:
 * that makes room, and objects that die young cost the garbage collector least.
 */
export class RecentTasks {
  readonly #tasks = new SlotMap<string, FinishedTask>();

  add(task: Task, result: Payload | undefined): void {
    if (result && (!isBare(result) || result.json.length > MAX_CACHED_RESULT_CHARACTERS)) {
      return;
    }
    this.#tasks.set(task.taskId, { task, result });
    if (this.#tasks.size > MAX_CACHED_TASKS) {
      const oldest = this.#tasks.keys().next();
      this.#tasks.take(oldest.value ?? "");
    }
  }

  forgetAll(): void {
    for (const taskId of [...this.#tasks.keys()]) {
      this.#tasks.take(taskId);
    }
  }

  /** Removes and returns a task whose result is being fetched. */
  take(taskId: string, nowMs: number): FinishedTask | undefined {
    return unexpired(this.#tasks.take(taskId), nowMs);
  }

  get(taskId: string, nowMs: number): FinishedTask | undefined {
    return unexpired(this.#tasks.get(taskId), nowMs);
  }
}

function unexpired(found: FinishedTask | undefined, nowMs: number): FinishedTask | undefined {
  return found && found.task.expiresAtMs > nowMs ? found : undefined;
}
