/** Lines of the audit log about one task. */
import type { HandlerContext } from "@connectrpc/connect";
import { actorOf, callerOf, deed, type Sources } from "../../server/rpc/engine/caller.ts";
import { locatedOf } from "../../server/rpc/interceptors/access.ts";
import type { AuditAction } from "../../storage/accounts/audit.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";

export interface TaskAudit extends Sources {
  readonly accounts: Pick<Organizations, "recordAuditEvent">;
}

/** Records what a caller has done to a task of the deployment that is called; nothing where there are no accounts. */
export async function recordOfTask(
  audit: TaskAudit | undefined,
  ctx: HandlerContext,
  event: {
    readonly action: AuditAction;
    readonly details: Readonly<Record<string, string>>;
  },
): Promise<void> {
  if (audit) {
    const { organizationId, deploymentId, name } = locatedOf(ctx).facts;
    await audit.accounts.recordAuditEvent({
      ...deed(actorOf(callerOf(ctx)), audit),
      ...{ ...event, organizationId, subjectId: deploymentId, subject: name },
    });
  }
}
