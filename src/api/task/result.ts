/** The answer about a finished task: its result, or the error that it ended with. */
import { Code } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import type { TaskResult } from "../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../deployments/deployment.ts";
import { problem } from "../../errors.ts";
import type { Payload } from "../../protocol/messages.ts";
import { notFinished } from "../../queue/tasks.ts";
import type { FinishedTask } from "../../queue/waits/recent-tasks.ts";
import { pathBelow } from "../../service/mounts.ts";
import type { Task } from "../../tasks/task.ts";
import { toResultMessage } from "./messages.ts";
import type { ResultMessageOptions } from "./stored.ts";

/**
 * Returns the result of a task that succeeded, as a promise only if it has to
 * be read from the blob store. For any other task, throws the caller's error, except that the
 * answer of a mounted server goes to callers over HTTP, whatever its status.
 */
export function answer(
  finished: FinishedTask,
  deployment: Deployment,
  { format, bodies }: Pick<ResultMessageOptions, "format" | "bodies">,
): TaskResult | Promise<TaskResult> {
  const { task, result } = finished;
  const toMessage = ({ endpoint: name, taskId }: Task, result: Payload) => {
    const endpoint = deployment.find(name);
    return toResultMessage(result, endpoint, {
      format,
      bodies,
      keeper: deployment.files.task,
      from: `GET ${pathBelow(endpoint ?? { name }, "get")}?task_id=${taskId}`,
    });
  };
  switch (task.status) {
    case "success": {
      if (result === undefined) {
        throw problem("TASK_NOT_FOUND", `task ${task.taskId} has expired`);
      }
      return toMessage(task, result);
    }
    case "failure":
      // What a server answered is said as it said it, by who can say it.
      return result && bodies ? toMessage(task, result) : refuseUnsuccessful(task);
    default:
      return refuseUnsuccessful(task);
  }
}

/** Throws the caller's error for a task that has not succeeded. */
export function refuseUnsuccessful(task: Task): never {
  switch (task.status) {
    case "cancelled":
      throw problem(
        "TASK_CANCELLED",
        `task ${task.taskId} was cancelled and has no result: retry it to run it again`,
        {
          metadata: { task_id: task.taskId },
        },
      );
    case "failure":
      throw failed(task);
    default:
      throw notFinished(task);
  }
}

function failed({ taskId, failure }: Task): Error {
  const { reason = "error", code = "internal", message = "", status } = failure ?? {};
  return problem("TASK_FAILED", message || "the function failed without a message", {
    code: codeFromString(code) ?? Code.Internal,
    metadata: { task_id: taskId, failure_reason: reason },
    violations: failure?.violations ?? [],
    ...(status !== undefined && { status }),
  });
}
