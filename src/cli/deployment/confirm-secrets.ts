/** `tessera deployment confirm-secrets`: gives secrets to what somebody else has deployed. */
import type { Command } from "commander";
import type { Deployment, Revision } from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand } from "../command.ts";
import { CliError } from "../failure.ts";
import { fields, moment } from "../output.ts";
import { finishRollout, NO_WAIT, type WaitFlags } from "./state.ts";
import { NAME } from "./view.ts";

export function confirmSecretsCommand(actions: CloudActions): Command {
  return callCommand<WaitFlags>("confirm-secrets", actions, {
    description:
      "Give a deployment's secrets to code and variables from somebody who may not use them. Shows first what would have them. For admins, and tokens of the organization.",
    arguments: [NAME],
    options: [NO_WAIT],
    asks: true,
    examples: ["tessera deployment confirm-secrets summarizer"],
    run: async (call, { wait }, [name = ""]) => {
      const { organization, client } = call;
      const deployment = await client.deployments.getDeployment({ organization, deployment: name });
      const { targetRevision, secretsWithheld, version } = deployment;
      if (secretsWithheld.length === 0) {
        call.done(`Nothing is withheld from ${name}`);
        return;
      }
      const revision = await targetOf(call, deployment);
      call.terminal.say(reviewOf(deployment, revision));
      const what = `revision ${targetRevision} of ${name} with these variables`;
      await call.insist(`Give ${what} its secrets?`);
      // The version is that of what was shown: nothing else is confirmed.
      const request = { organization, deployment: name, version };
      const confirmed = await client.deployments.confirmSecrets(request);
      call.done(`Confirmed ${what}: workers with the secrets replace the others`);
      await finishRollout(call, confirmed, { wait });
    },
  });
}

async function targetOf(call: CommandRun, deployment: Deployment): Promise<Revision> {
  const { organization, client } = call;
  const { name, targetRevision } = deployment;
  const request = { organization, deployment: name, pageSize: 1 };
  const { revisions } = await client.deployments.listRevisions(request);
  const [newest] = revisions;
  if (newest?.revision !== targetRevision) {
    throw new CliError(`${name} has just been deployed again: look at it once more`);
  }
  return newest;
}

/** What would have the secrets, with the values of variables: they decide where secrets go. */
function reviewOf({ settings, secretsWithheld }: Deployment, revision: Revision): string {
  const { createdAt, createdBy, digest, secretsConfirmedBy: by } = revision;
  const variables = Object.entries(settings?.env ?? {}).map(([name, value]) => `${name}=${value}`);
  return fields([
    ["revision", `${revision.revision}, by ${createdBy} at ${moment(createdAt)}`],
    ["artifact", digest],
    ["code", by === "" ? "not confirmed" : `confirmed by ${by}`],
    ...(variables.length === 0 ? ["none"] : variables).map(
      (text, index) => [index === 0 ? "variables" : " ", text] as const,
    ),
    ["secrets", secretsWithheld.join(", ")],
  ]);
}
