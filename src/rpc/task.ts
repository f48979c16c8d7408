import type { Duration } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { TaskService } from "../../gen/tessera/v1/task_pb.js";
import type { Directory } from "../deployments/directory.ts";
import type { TaskQuestion } from "../queue/queue.ts";
import { deploymentOf } from "./deployment.ts";
import { listTasks } from "./list.ts";
import { milliseconds, toEventMessage, toTaskMessage } from "./messages.ts";
import { answer } from "./result.ts";
import { submitHandlers } from "./submit.ts";

/** TaskService over the queues of the deployments in the directory. */
export function taskService(directory: Directory): Partial<ServiceImpl<typeof TaskService>> {
  return {
    ...submitHandlers(directory),

    async getTask(req, ctx) {
      const { queue } = deploymentOf(directory, req.deployment, ctx);
      const task = await queue.get(question(req, ctx.signal));
      return toTaskMessage(task, await queue.place(task));
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
      const task = await deployment.queue.retry(question(req, ctx.signal), endpointOf);
      return toTaskMessage(task, await deployment.queue.place(task));
    },

    async listTasks(req, ctx) {
      return listTasks(deploymentOf(directory, req.deployment, ctx), req);
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
