/** The failures that the queue itself gives a task. */
import { MAX_LOST_WORKERS, type TaskFailure } from "./task.ts";

/** Of a task whose deadline to start has passed. */
export const EXPIRED: TaskFailure = {
  reason: "expired",
  code: "deadline_exceeded",
  message: "the task was not started before its deadline",
};

/** Of a task whose worker died once more than is tolerated. */
export const WORKER_LOST: TaskFailure = {
  reason: "worker_lost",
  code: "internal",
  message: `the worker died during this task ${MAX_LOST_WORKERS + 1} times; it is not tried again`,
};
