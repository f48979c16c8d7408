/** DeleteTask, with its line in the audit log where there is one. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { actorOf, callerOf, deed, type Sources } from "../../server/rpc/engine/caller.ts";
import { deploymentOf, locatedOf } from "../../server/rpc/interceptors/access.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import { question } from "./task.ts";

export interface DeletionOptions extends Sources {
  readonly accounts: Pick<Organizations, "recordAuditEvent">;
}

/** The method that deletes a task. `audit`: default, where there are no accounts, nothing is recorded. */
export function deleteHandlers(
  audit?: DeletionOptions,
): Pick<ServiceImpl<typeof TaskService>, "deleteTask"> {
  return {
    async deleteTask(req, ctx) {
      const { queue } = deploymentOf(ctx);
      await queue.amending.delete(question(req, ctx), req.abort);
      if (audit) {
        const { organizationId, deploymentId, name } = locatedOf(ctx).facts;
        await audit.accounts.recordAuditEvent({
          ...deed(actorOf(callerOf(ctx)), audit),
          ...{ organizationId, action: "task.delete", subjectId: deploymentId, subject: name },
          details: { task: req.taskId },
        });
      }
      return {};
    },
  };
}
