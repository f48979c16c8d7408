import { shuttingDown } from "../errors.ts";
import type { Task } from "../tasks/task.ts";
import type { Changes } from "./changes.ts";

export interface WaitOptions {
  readonly changes: Changes;
  readonly taskId: string;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Reads the task as it is now; a promise only where it is not known at once. */
  readonly read: () => Task | Promise<Task>;
  /** True for the task that was waited for. */
  readonly enough: (task: Task) => boolean;
}

/**
 * Resolves with the task as soon as it is `enough`, and with what it then is
 * when the time is over or the caller has gone. It listens first and reads
 * then, so that no change falls between the two.
 */
export function waitFor(options: WaitOptions): Promise<Task> {
  const { changes, taskId, waitMs, signal, read, enough } = options;
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      unlisten();
      signal?.removeEventListener("abort", giveUp);
      settle();
    };
    const look = (task: Task): void => {
      if (enough(task)) {
        end(() => resolve(task));
      }
    };
    const fail = (err: unknown): void => end(() => reject(err));
    const readTo = (take: (task: Task) => void): void => {
      const task = read();
      if (task instanceof Promise) {
        task.then(take, fail);
      } else {
        take(task);
      }
    };
    const giveUp = (): void => end(() => readTo(resolve));
    const timer = setTimeout(giveUp, waitMs);
    let unlisten = (): void => {};
    try {
      unlisten = changes.listen(taskId, {
        onChange: (task) => (task ? look(task) : readTo(look)),
        onClose: () => fail(shuttingDown()),
      });
    } catch (err) {
      fail(err);
      return;
    }
    if (signal?.aborted) {
      giveUp();
      return;
    }
    signal?.addEventListener("abort", giveUp, { once: true });
    readTo(look);
  });
}
