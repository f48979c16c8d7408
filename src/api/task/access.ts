/** CreateTaskAccess: an access of a task for a caller who may read the task. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { TaskAccess as Message, TaskService } from "../../../gen/tessera/v1/task_pb.js";
import type { TaskAccess } from "../../auth/task-access.ts";
import type { Located } from "../../deployments/directory.ts";
import { callerOf } from "../../server/rpc/engine/caller.ts";
import { deploymentOf, locatedOf } from "../../server/rpc/interceptors/access.ts";
import { pathBelow } from "../../service/mounts.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { question } from "./task.ts";

export interface AccessOptions {
  readonly taskAccess: TaskAccess;
  /** Where a deployment is called. Default: where the caller knows. */
  readonly urlOf?: (deployment: Pick<Located["facts"], "name" | "organization">) => string;
}

/** The methods that make accesses. */
export function accessHandlers({
  taskAccess,
  urlOf,
}: AccessOptions): Partial<ServiceImpl<typeof TaskService>> {
  return {
    async createTaskAccess(req, ctx): Promise<Message> {
      const { taskId, endpoint } = await deploymentOf(ctx).tasks.get(question(req, ctx));
      const { facts } = locatedOf(ctx);
      const { principal } = callerOf(ctx);
      const { access, expiresAtMs } = taskAccess.make({ principal, taskId, deployment: facts });
      const path = `${eventsPath(ctx, endpoint)}?task_id=${taskId}&access=${access}`;
      return {
        $typeName: "tessera.v1.TaskAccess",
        access,
        expiresAt: timestampFromMs(expiresAtMs),
        path,
        url: urlOf === undefined ? "" : urlOf(facts) + path,
      };
    },
  };
}

/** The path of the events of an endpoint's tasks, also of one that the service no longer has. */
function eventsPath(ctx: HandlerContext, endpoint: string): string {
  return pathBelow(deploymentOf(ctx).find(endpoint) ?? { name: endpoint }, "events");
}
