/** The problems of calls about a task that does not exist or is in the wrong state. */
import { problem } from "../errors.ts";
import type { Task } from "../tasks/task.ts";

export function notFound(taskId: string): Error {
  return problem("TASK_NOT_FOUND", `task ${taskId.slice(0, 64)} does not exist or has expired`);
}

export function notFinished({ taskId, status }: Task): Error {
  const message = `task ${taskId} is ${status}: ask again when it has finished, or with wait`;
  return problem("TASK_NOT_FINISHED", message, { metadata: { task_id: taskId, status } });
}

export function finished({ taskId, status }: Task): Error {
  const message = `task ${taskId} has already ended (${status}) and cannot be cancelled`;
  return problem("TASK_FINISHED", message, { metadata: { task_id: taskId, status } });
}
