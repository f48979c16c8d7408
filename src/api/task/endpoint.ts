/** EndpointService: lists endpoints, and calls them synchronously. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type CallEndpointRequest,
  EndpointKind,
  type EndpointService,
  PieceForm,
} from "../../../gen/tessera/v1/endpoint_pb.js";
import type { TaskResult } from "../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../deployments/deployment.ts";
import type { FoundEndpoint } from "../../deployments/rollout.ts";
import { type Problem, problem, toProblem } from "../../errors.ts";
import { streamedBodies } from "../../server/http/streamed-bodies.ts";
import {
  keyOf,
  keyOfCall,
  noteTask,
  tellsQuota,
  tokenIdOf,
  tracedCall,
} from "../../server/rpc/engine/caller.ts";
import { deploymentOf } from "../../server/rpc/interceptors/access.ts";
import type { Origin } from "../../tracing/context.ts";
import {
  finallyReleasing,
  inputOf,
  releasingUnless,
  shownRequest,
  toResultMessage,
  withRequest,
} from "./messages.ts";
import { answer } from "./result.ts";
import { inNamedWorker, PIECE_FORMS, streamEndpoint, takesHead, wholeOf } from "./stream.ts";
import { digestOfCall, idempotencyOf, noteReplay, refuseKey, scheduleText } from "./submit.ts";

/** For idempotency, a synchronous call equals a submit without a schedule. */
const NO_SCHEDULE = scheduleText({});

/** EndpointService over deployments. */
export const endpointService: Partial<ServiceImpl<typeof EndpointService>> = {
  listEndpoints(_req, ctx) {
    const { manifest } = deploymentOf(ctx);
    return {
      endpoints: manifest.endpoints.map(({ name, kind, description, input, output, stream }) => ({
        name,
        kind: kind === "task" ? EndpointKind.TASK : EndpointKind.API,
        description: description ?? "",
        inputSchema: input as JsonObject,
        outputSchema: output as JsonObject,
        pieces: stream ? PIECE_FORMS[stream.pieces] : PieceForm.UNSPECIFIED,
      })),
    };
  },

  streamEndpoint,

  async callEndpoint(req, ctx) {
    const deployment = deploymentOf(ctx);
    const { kind = "api" } = deployment.find(req.endpoint) ?? {};
    const key = kind === "task" ? req.idempotencyKey : "";
    const refusal = deployment.admit(kind, tokenIdOf(ctx.values), key);
    const endpoint = deployment.endpoint(req.endpoint);
    return tracedCall(ctx, deployment, {
      endpoint: endpoint.manifest.name,
      run: (origin) => call(req, ctx, { deployment, endpoint, origin, refusal }),
    });
  },
};

async function call(
  req: CallEndpointRequest,
  ctx: HandlerContext,
  { deployment, endpoint: { manifest, reader }, origin, refusal }: Called,
): Promise<TaskResult> {
  if (manifest.kind === "api") {
    refuseKey(req.idempotencyKey, req.endpoint);
  }
  const bodies = ctx.values.get(streamedBodies);
  const keeper = deployment.files[manifest.kind];
  const request = shownRequest(ctx, manifest);
  const read = await reader.read(inputOf(req.input, bodies), keeper, deployment.readers);
  const payload = withRequest(read, request);
  const format = req.resultFormat;
  const { signal } = ctx;
  if (manifest.kind === "api") {
    const { calls } = deployment;
    const key = keyOfCall(ctx, manifest);
    const told = { ...tellsQuota(ctx, manifest), ...inNamedWorker(ctx), ...takesHead(bodies) };
    const caller = { signal, origin, key, ...told };
    const calling = manifest.stream
      ? wholeOf(calls.stream(manifest, payload, caller), manifest)
      : calls.call(manifest, payload, caller);
    const result = await finallyReleasing(calling, payload, keeper);
    const from = `POST /${manifest.name}`;
    return toResultMessage(result, manifest, { format, keeper, bodies, temporary: true, from });
  }
  const key = keyOf(ctx, "", manifest);
  const idempotency = idempotencyOf(req, () => digestOfCall(payload, NO_SCHEDULE));
  const options = { key, idempotency, refusal, origin };
  const submitting = deployment.queue.submit(manifest, payload, options);
  const { task, replayed } = await releasingUnless(submitting, payload, keeper);
  noteTask(ctx, task);
  if (replayed) {
    noteReplay(ctx);
  }
  const { taskId } = task;
  const waitMs = manifest.timeoutMs;
  const finished = await namingTask(deployment.tasks.result({ taskId, waitMs, signal }), taskId);
  if (finished.task.status === "queued" || finished.task.status === "running") {
    throw problem(
      "CALL_TIMEOUT",
      `task ${taskId} has not ended within ${waitMs} ms and goes on: ask for its result later`,
      { metadata: { task_id: taskId } },
    );
  }
  return answer(finished, deployment, { format, bodies });
}

/** The target and the origin of a call. */
interface Called {
  readonly deployment: Deployment;
  readonly endpoint: FoundEndpoint;
  readonly origin: Origin;
  /** Of what is no repeat. */
  readonly refusal: Problem | undefined;
}

/** Adds the task's id to errors of the wait, because they do not end the task. */
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
