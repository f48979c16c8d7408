/** The list of commands that call a platform or a deployment. */
import type { Command } from "commander";
import { auditCommand } from "./audit.ts";
import { endpointCallCommand } from "./call.ts";
import { clientCommand } from "./client.ts";
import { cloudCommand } from "./cloud.ts";
import type { CloudActions } from "./command.ts";
import { deploymentCommand } from "./deployment/deployment.ts";
import { memberCommand } from "./member.ts";
import { orgCommand } from "./org.ts";
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
