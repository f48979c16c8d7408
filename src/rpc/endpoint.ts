import type { JsonObject } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { EndpointKind, type EndpointService } from "../../gen/tessera/v1/endpoint_pb.js";
import type { Directory } from "../deployments/directory.ts";
import { problem } from "../errors.ts";
import { deploymentOf } from "./deployment.ts";
import { toResultMessage } from "./messages.ts";
import { answer } from "./task.ts";

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
      const finished = await deployment.queue.result({ taskId, waitMs, signal: ctx.signal });
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
