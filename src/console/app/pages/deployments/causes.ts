/** Failed tasks by why they failed. */
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { failureText } from "../tasks/failure-text.ts";

/** The tasks that failed for one cause. */
export interface Cause {
  /** The message of the failure. */
  readonly text: string;
  /** Newest first, as they were given: at least one. */
  readonly tasks: readonly TaskJson[];
  /** The endpoints of the tasks, each once. */
  readonly endpoints: readonly string[];
}

/** Causes in the order of their first tasks. */
export function causesOf(failed: readonly TaskJson[]): readonly Cause[] {
  const byText = Map.groupBy(failed, ({ failure = {} }) => failureText(failure));
  return Array.from(byText, ([text, tasks]) => {
    return { text, tasks, endpoints: [...new Set(tasks.map(({ endpoint = "" }) => endpoint))] };
  });
}
