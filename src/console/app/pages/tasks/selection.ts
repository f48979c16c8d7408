/** The tasks of a list that were selected, by id: they stay so while the list changes. */
import { useRef, useState } from "react";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";

export interface TaskSelection {
  readonly size: number;
  has(taskId: string): boolean;
  /** Selects a task or not; with `toLast` all from the one before to this. The function never changes. */
  toggle(taskId: string, toLast: boolean): void;
  /** Selects all that are loaded, or none. */
  toggleAll(): void;
  clear(): void;
  /** Those that are still in the list. */
  readonly tasks: readonly TaskJson[];
}

export function useSelection(all: readonly TaskJson[]): TaskSelection {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [last, setLast] = useState("");
  const ids = all.map(({ taskId = "" }) => taskId);
  const tasks = all.filter(({ taskId = "" }) => selected.has(taskId));
  const toggle = (taskId: string, toLast: boolean): void => {
    const from = toLast ? ids.indexOf(last) : -1;
    const to = ids.indexOf(taskId);
    const range = from < 0 ? [taskId] : ids.slice(Math.min(from, to), Math.max(from, to) + 1);
    const next = new Set(selected);
    for (const id of range) {
      if (selected.has(taskId)) {
        next.delete(id);
      } else {
        next.add(id);
      }
    }
    setSelected(next);
    setLast(taskId);
  };
  const latest = useRef(toggle);
  latest.current = toggle;
  const [stable] = useState(
    () => (taskId: string, toLast: boolean) => latest.current(taskId, toLast),
  );
  return {
    size: tasks.length,
    tasks,
    has: (taskId) => selected.has(taskId),
    toggle: stable,
    toggleAll: () => setSelected(tasks.length === all.length ? new Set() : new Set(ids)),
    clear: () => setSelected(new Set()),
  };
}
