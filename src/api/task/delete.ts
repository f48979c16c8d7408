/** DeleteTask, with its line in the audit log where there is one. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { deploymentOf } from "../../server/rpc/interceptors/access.ts";
import { recordOfTask, type TaskAudit } from "./audit.ts";
import { question } from "./task.ts";

/** The method that deletes a task. `audit`: default, where there are no accounts, nothing is recorded. */
export function deleteHandlers(
  audit?: TaskAudit,
): Pick<ServiceImpl<typeof TaskService>, "deleteTask"> {
  return {
    async deleteTask(req, ctx) {
      const { queue } = deploymentOf(ctx);
      await queue.amending.delete(question(req, ctx), req.abort);
      await recordOfTask(audit, ctx, { action: "task.delete", details: { task: req.taskId } });
      return {};
    },
  };
}
