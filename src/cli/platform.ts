/** The list of commands that call a platform or a deployment. */
import type { Command } from "commander";
import { endpointCallCommand } from "./call/call.ts";
import { clientCommand } from "./client.ts";
import type { CloudActions } from "./command.ts";
import { deploymentCommand } from "./deployment/deployment.ts";
import { cloudCommand } from "./login/cloud.ts";
import { auditCommand } from "./organization/audit.ts";
import { memberCommand } from "./organization/member.ts";
import { orgCommand } from "./organization/organization.ts";
import { taskCommand } from "./task/task.ts";
import { tokenCommand } from "./token/token.ts";

export function platformCommands(actions: CloudActions): Command[] {
  return [
    endpointCallCommand,
    taskCommand,
    clientCommand,
    cloudCommand,
    tokenCommand,
    orgCommand,
    memberCommand,
    deploymentCommand,
    auditCommand,
  ].map((make) => make(actions));
}
