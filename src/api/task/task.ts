/** TaskService: submits, reads, cancels, retries and watches tasks. */
import type { Duration } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import type { TaskQuestion } from "../../queue/tasks.ts";
import { streamedBodies } from "../../server/http/streamed-bodies.ts";
import { noteTask, originOf, tokenIdOf } from "../../server/rpc/engine/caller.ts";
import { deploymentOf, locatedOf } from "../../server/rpc/interceptors/access.ts";
import { noteEndpoint } from "../../server/rpc/interceptors/count.ts";
import { toArgumentsMessage, toFileMessage } from "./arguments.ts";
import { listTasks } from "./list.ts";
import {
  milliseconds,
  seesDetail,
  toAttemptMessages,
  toQueuedReason,
  toTaskMessage,
} from "./messages.ts";
import { positionOf, streamTask, toWatchedMessage } from "./pieces.ts";
import { answer } from "./result.ts";
import { digestOfRetry, idempotencyOf, noteReplay, submitHandlers } from "./submit.ts";

/** TaskService over the queues of deployments. */
export const taskService: Partial<ServiceImpl<typeof TaskService>> = {
  ...submitHandlers,

  async getTask(req, ctx) {
    const located = locatedOf(ctx);
    const asked = question(req, ctx);
    // Nobody may wait for it where nothing serves: no change of it is told there.
    const stored = asked.waitMs ? undefined : located.stored?.();
    const { tasks, name } = stored ?? located.deployment();
    const task = await tasks.get(asked);
    const place = await tasks.place(task);
    const message = toTaskMessage(task, name, place);
    message.attempts = toAttemptMessages(task);
    if (task.status === "queued") {
      const seesDeployment = seesDetail(ctx.values, located.facts.organizationId);
      const reason = await located.whyQueued(task, place?.position);
      message.queuedReason = toQueuedReason(reason, { seesDeployment });
    }
    return message;
  },

  getTaskResult(req, ctx) {
    const deployment = deploymentOf(ctx);
    const bodies = ctx.values.get(streamedBodies);
    return deployment.tasks
      .result(question(req, ctx))
      .then((finished) => answer(finished, deployment, { format: req.resultFormat, bodies }));
  },

  async getTaskArguments(req, ctx) {
    const deployment = deploymentOf(ctx);
    const submitted = await deployment.tasks.arguments(question(req, ctx));
    return toArgumentsMessage(submitted, deployment, ctx.values.get(streamedBodies));
  },

  async getTaskArgumentFile(req, ctx) {
    const deployment = deploymentOf(ctx);
    const bodies = ctx.values.get(streamedBodies);
    const submitted = await deployment.tasks.arguments(question(req, ctx));
    return toFileMessage(submitted, req.file, { deployment, bodies });
  },

  async cancelTask(req, ctx) {
    const { queue, name } = deploymentOf(ctx);
    return toTaskMessage(await queue.cancel(question(req, ctx), req.abort), name);
  },

  async retryTask(req, ctx) {
    const deployment = deploymentOf(ctx);
    const refusal = deployment.admit("task", tokenIdOf(ctx.values), req.idempotencyKey);
    const endpointOf = (name: string) => {
      // Here, and not with the answer: the queue may still refuse the retry.
      noteEndpoint(ctx, name);
      return deployment.taskEndpoint(name).manifest;
    };
    const idempotency = idempotencyOf(req, () => digestOfRetry(req.taskId));
    const asked = { ...question(req, ctx), idempotency, refusal, origin: originOf(ctx) };
    const { task, replayed } = await deployment.queue.amending.retry(asked, endpointOf);
    if (replayed) {
      noteReplay(ctx);
    }
    noteTask(ctx, task);
    return toTaskMessage(task, deployment.name, await deployment.tasks.place(task));
  },

  async listTasks(req, ctx) {
    const seesDeployment = seesDetail(ctx.values, locatedOf(ctx).facts.organizationId);
    return listTasks(deploymentOf(ctx), req, { seesDeployment });
  },

  async *watchTask(req, ctx) {
    const deployment = deploymentOf(ctx);
    const after = { sequence: Number(req.afterSequence), piece: positionOf(req) };
    for await (const event of deployment.tasks.watch(question(req, ctx), after)) {
      yield toWatchedMessage(event, deployment);
    }
  },

  streamTask: (req, ctx) => streamTask(req, ctx, question(req, ctx)),
};

/** The task that a request is about, and how long its caller waits. */
export function question(
  req: { readonly taskId: string; readonly endpoint: string; readonly wait?: Duration },
  ctx: HandlerContext,
): TaskQuestion {
  const { taskId, endpoint, wait } = req;
  const { signal } = ctx;
  noteTask(ctx, req);
  return { taskId, endpoint: endpoint || undefined, waitMs: milliseconds(wait), signal };
}
