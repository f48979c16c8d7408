import type { JsonObject } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { EndpointKind, type EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import { problem, toProblem } from "../errors.ts";
import { streamedBodies } from "../http/streamed.ts";
import { finallyReleasing, inputOf, releasingUnless } from "./input.ts";
import { toResultMessage } from "./messages.ts";
import { answer } from "./result.ts";
import { deploymentOf } from "./target.ts";

/** EndpointService over deployments. */
export const endpointService: Partial<ServiceImpl<typeof EndpointService>> = {
  listEndpoints(_req, ctx) {
    const { manifest } = deploymentOf(ctx);
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
    const deployment = deploymentOf(ctx);
    deployment.admit();
    const { manifest, reader } = deployment.endpoint(req.endpoint);
    const bodies = ctx.values.get(streamedBodies);
    const keeper = deployment.files[manifest.kind];
    const payload = await reader.read(inputOf(req.input, bodies), keeper);
    const format = req.resultFormat;
    if (manifest.kind === "api") {
      const calling = deployment.calls.call(manifest, payload, ctx.signal);
      const result = await finallyReleasing(calling, payload, keeper);
      return toResultMessage(result, manifest, { format, keeper, bodies, temporary: true });
    }
    const submitting = deployment.queue.submit(manifest, payload);
    const { taskId } = (await releasingUnless(submitting, payload, keeper)).task;
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
    return answer(finished, deployment, { format, bodies });
  },
};

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
