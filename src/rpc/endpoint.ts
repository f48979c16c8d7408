import type { JsonObject } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { EndpointKind, type EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import type { Directory } from "../deployments/directory.ts";
import { problem, toProblem } from "../errors.ts";
import { deploymentOf } from "./deployment.ts";
import { toResultMessage } from "./messages.ts";
import { answer } from "./result.ts";

/** EndpointService over the deployments in the directory. */
export function endpointService(
  directory: Directory,
): Partial<ServiceImpl<typeof EndpointService>> {
  return {
    listEndpoints(req, ctx) {
      const { manifest } = deploymentOf(directory, req.deployment, ctx);
      return {
        endpoints: manifest.endpoints.map(({ name, kind, description, input, output }) => ({
          name,
          kind: kind === "task" ? EndpointKind.TASK : EndpointKind.API,
          description: description ?? "",
          inputSchema: input as JsonObject,
          outputSchema: output as JsonObject,
        })),
      };
    },

    async callEndpoint(req, ctx) {
      const deployment = deploymentOf(directory, req.deployment, ctx);
      deployment.admit();
      const { manifest, reader } = deployment.endpoint(req.endpoint);
      const payload = await reader.read(req.input);
      if (manifest.kind === "api") {
        const result = await deployment.calls.call(manifest, payload, ctx.signal);
        return toResultMessage(result, manifest, req.resultFormat);
      }
      const { taskId } = (await deployment.queue.submit(manifest, payload)).task;
      const waitMs = manifest.timeoutMs;
      const finished = await namingTask(
        deployment.queue.result({ taskId, waitMs, signal: ctx.signal }),
        taskId,
      );
      if (finished.task.status === "queued" || finished.task.status === "running") {
        throw problem(
          "CALL_TIMEOUT",
          `task ${taskId} has not ended within ${waitMs} ms and goes on: ask for its result later`,
          { metadata: { task_id: taskId } },
        );
      }
      return answer(finished, deployment, req.resultFormat);
    },
  };
}

/** An error while a task is waited for does not end the task: the caller is told which it is. */
async function namingTask<Result>(waiting: Promise<Result>, taskId: string): Promise<Result> {
  try {
    return await waiting;
  } catch (err) {
    const { reason, rawMessage, retryAfterMs } = toProblem(err);
    const message = `${rawMessage} (task ${taskId} was accepted: ask for its result, do not call again)`;
    throw problem(reason, message, {
      metadata: { task_id: taskId },
      cause: err,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }
}
