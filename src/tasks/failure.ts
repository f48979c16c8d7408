/** The failures that the queue itself sets on tasks. */
import { MAX_LOST_WORKERS, type TaskFailure } from "./task.ts";

/** For a task that missed its start deadline. */
export const EXPIRED: TaskFailure = {
  reason: "expired",
  code: "deadline_exceeded",
  message: "the task was not started before its deadline",
};

/** For a task that lost more workers than `MAX_LOST_WORKERS`. */
export const WORKER_LOST: TaskFailure = {
  reason: "worker_lost",
  code: "internal",
  message: `the worker died during this task ${MAX_LOST_WORKERS + 1} times; it is not tried again`,
};
