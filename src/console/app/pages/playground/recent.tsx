/** The tasks of this tab, which it keeps until it is closed. */
import { useId, useMemo, useSyncExternalStore } from "react";
import type { TaskStatusJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { secondText } from "../../ui/time-range.ts";
import { TaskStatus } from "../tasks/state.tsx";

/** Recent tasks that a playground lists. */
const MAX_RECENT_TASKS = 20;

interface RecentTask {
  readonly endpoint: string;
  readonly id: string;
  readonly status: TaskStatusJson;
  readonly createdAt: string;
}

const listeners = new Set<() => void>();

/** Those of other deployments, which the console shows in the same tab, are kept apart. */
const keyOf = (target: string): string => ["tessera.recent", target].filter(Boolean).join(".");

function parse(text: string | null): readonly RecentTask[] {
  try {
    return JSON.parse(text ?? "[]");
  } catch {
    // Written by something else: begin anew.
    return [];
  }
}

function change(target: string, by: (tasks: readonly RecentTask[]) => readonly RecentTask[]): void {
  const tasks = by(parse(sessionStorage.getItem(keyOf(target))));
  sessionStorage.setItem(keyOf(target), JSON.stringify(tasks.slice(0, MAX_RECENT_TASKS)));
  for (const listener of listeners) {
    listener();
  }
}

/** Adds a task, or changes its state. */
export function rememberTask(target: string, task: RecentTask): void {
  change(target, (tasks) =>
    tasks.some(({ id }) => id === task.id)
      ? tasks.map((one) => (one.id === task.id ? task : one))
      : [task, ...tasks],
  );
}

/** Removes a task that is not there any more. */
export function forgetTask(target: string, taskId: string): void {
  change(target, (tasks) => tasks.filter(({ id }) => id !== taskId));
}

/** The address of an endpoint, or of a task of it, within the page. */
export const hashOf = (...parts: readonly string[]): string =>
  `#/${parts.map(encodeURIComponent).join("/")}`;

interface RecentTasksProps {
  readonly target: string;
  /** The address that is shown. */
  readonly hash: string;
}

export function RecentTasks({ target, hash }: RecentTasksProps) {
  const heading = useId();
  const text = useSyncExternalStore(
    (onChange) => {
      listeners.add(onChange);
      return () => listeners.delete(onChange);
    },
    () => sessionStorage.getItem(keyOf(target)),
  );
  const tasks = useMemo(() => parse(text), [text]);
  return (
    tasks.length > 0 && (
      <section aria-labelledby={heading}>
        <h2 id={heading}>Recent tasks</h2>
        <ul className="recent">
          {tasks.map(({ endpoint, id, status, createdAt }) => {
            const to = hashOf(endpoint, id);
            return (
              <li key={id}>
                <a href={to} aria-current={to === hash ? "page" : undefined}>
                  <bdi>{endpoint}</bdi>
                  <TaskStatus status={status} />
                  <span className="hint">{secondText(Date.parse(createdAt))}</span>
                </a>
              </li>
            );
          })}
        </ul>
      </section>
    )
  );
}
