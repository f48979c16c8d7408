import { SlotMap } from "../collections/slots.ts";
import type { Payload } from "../protocol/messages.ts";
import type { Task } from "../tasks/task.ts";

/** A finished task; `result` is there when it succeeded. */
export interface FinishedTask {
  readonly task: Task;
  readonly result: Payload | undefined;
}

/** Results up to this length are worth keeping: most callers fetch within a second. */
const MAX_CHARACTERS = 16_384;
const MAX_TASKS = 2_000;

/**
 * The tasks that finished last on this node with their results, so that the
 * caller who waited for one is answered without asking the storage. Safe to
 * keep because a finished task never changes; bounded in number and size.
 * Nearly every result is fetched once, so one that was fetched is forgotten
 * here: it makes room, and dies young, which costs the garbage collector least.
 */
export class RecentTasks {
  readonly #tasks = new SlotMap<string, FinishedTask>();

  add(task: Task, result: Payload | undefined): void {
    if (result && (result.files.length > 0 || result.text || result.json.length > MAX_CHARACTERS)) {
      return;
    }
    this.#tasks.set(task.taskId, { task, result });
    if (this.#tasks.size > MAX_TASKS) {
      const oldest = this.#tasks.keys().next();
      this.#tasks.take(oldest.value ?? "");
    }
  }

  /** A task whose result is being fetched. */
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
