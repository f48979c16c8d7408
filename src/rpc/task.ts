import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import type { ResultFormat } from "../../gen/tessera/v1/task_pb.js";
import {
  SubmitTaskResponseSchema,
  type TaskResult,
  type TaskService,
} from "../../gen/tessera/v1/task_pb.js";
import type { Directory } from "../deployments/directory.ts";
import type { HostedDeployment } from "../deployments/hosted.ts";
import { problem } from "../errors.ts";
import { notFinished, type TaskQuestion } from "../queue/queue.ts";
import type { FinishedTask } from "../queue/recent.ts";
import type { Payload } from "../sdk/protocol.ts";
import { isFinal, type Task } from "../tasks/task.ts";
import { deploymentOf } from "./deployment.ts";
import { toEventMessage, toResultMessage, toTaskMessage } from "./messages.ts";

/** TaskService over the queues of the deployments in the directory. */
export function taskService(directory: Directory): Partial<ServiceImpl<typeof TaskService>> {
  return {
    async submitTask(req, ctx) {
      const deployment = deploymentOf(directory, req.deployment, ctx);
      deployment.admit();
      const { manifest, reader } = deployment.taskEndpoint(req.endpoint);
      const payload = await reader.read(req.input);
      const key = req.idempotencyKey;
      const options = key === "" ? {} : { idempotency: { key, digest: digest(payload) } };
      const { task, replayed } = await deployment.queue.submit(manifest, payload, options);
      const response = create(SubmitTaskResponseSchema);
      response.replayed = replayed;
      const waitMs = milliseconds(req.wait);
      if (waitMs === 0) {
        response.task = toTaskMessage(task);
        return response;
      }
      const { taskId } = task;
      const ended = await deployment.queue.result({ taskId, waitMs, signal: ctx.signal });
      response.task = toTaskMessage(ended.task);
      if (isFinal(ended.task.status)) {
        response.result = answer(ended, deployment, req.resultFormat);
      }
      return response;
    },

    async getTask(req, ctx) {
      const { queue } = deploymentOf(directory, req.deployment, ctx);
      return toTaskMessage(await queue.get(question(req, ctx.signal)));
    },

    async getTaskResult(req, ctx) {
      const deployment = deploymentOf(directory, req.deployment, ctx);
      const finished = await deployment.queue.result(question(req, ctx.signal));
      return answer(finished, deployment, req.resultFormat);
    },

    async cancelTask(req, ctx) {
      const { queue } = deploymentOf(directory, req.deployment, ctx);
      return toTaskMessage(await queue.cancel(question(req, ctx.signal), req.abort));
    },

    async retryTask(req, ctx) {
      const deployment = deploymentOf(directory, req.deployment, ctx);
      deployment.admit();
      const endpointOf = (name: string) => deployment.taskEndpoint(name).manifest;
      return toTaskMessage(await deployment.queue.retry(question(req, ctx.signal), endpointOf));
    },

    async *watchTask(req, ctx) {
      const { queue } = deploymentOf(directory, req.deployment, ctx);
      for await (const event of queue.watch(question(req, ctx.signal), Number(req.afterSequence))) {
        yield toEventMessage(event);
      }
    },
  };
}

function question(
  req: { readonly taskId: string; readonly endpoint: string; readonly wait?: Duration },
  signal: AbortSignal,
): TaskQuestion {
  const { taskId, endpoint, wait } = req;
  return { taskId, endpoint: endpoint || undefined, waitMs: milliseconds(wait), signal };
}

function milliseconds(wait: Duration | undefined): number {
  return wait === undefined ? 0 : durationMs(wait);
}

/** The result of a task that succeeded; throws what a caller hears of any other. */
export function answer(
  finished: FinishedTask,
  deployment: HostedDeployment,
  format: ResultFormat,
): TaskResult {
  const { task, result } = finished;
  switch (task.status) {
    case "success":
      if (result === undefined) {
        throw problem("TASK_NOT_FOUND", `task ${task.taskId} has expired`);
      }
      return toResultMessage(result, deployment.find(task.endpoint), format);
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
  const { reason = "error", code = "internal", message = "", violations = [] } = failure ?? {};
  return problem("TASK_FAILED", message || "the function failed without a message", {
    code: codeFromString(code) ?? Code.Internal,
    metadata: { task_id: taskId, failure_reason: reason },
    violations,
  });
}

/** Tells the same arguments from others, files included. */
function digest({ json, files }: Payload): string {
  const hash = createHash("sha256").update(json);
  for (const { contentType, filename, data } of files) {
    hash.update(JSON.stringify([contentType, filename, data.byteLength])).update(data);
  }
  return hash.digest("base64url");
}
