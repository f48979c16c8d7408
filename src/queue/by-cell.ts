/** One of something for each cell of tasks, so that a cell that does not answer keeps no other waiting. */
import { cellOfTaskId } from "../tasks/id.ts";

export class ByCell<Each> {
  readonly #make: () => Each;
  readonly #made = new Map<number, Each>();

  constructor(make: () => Each) {
    this.#make = make;
  }

  /** That of the cell of a task. */
  of(taskId: string): Each {
    const cell = cellOfTaskId(taskId);
    let found = this.#made.get(cell);
    if (found === undefined) {
      found = this.#make();
      this.#made.set(cell, found);
    }
    return found;
  }

  /** All that there are. */
  all(): readonly Each[] {
    return [...this.#made.values()];
  }
}
