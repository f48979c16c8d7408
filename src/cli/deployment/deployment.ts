/** `tessera deployment`: lists, shows, changes and deletes deployments. */
import type { Command } from "commander";
import {
  type Deployment,
  ListDeploymentsResponseSchema,
  type Revision,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, group, option } from "../command.ts";
import { CliError, usageError } from "../failure.ts";
import { NAME_OR_HERE, nameOrHere } from "../here.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { fields, moment } from "../output.ts";
import { plain } from "../plain.ts";
import { SESSION_OPTIONS, type SessionFlags, withTokenOrSession } from "../session.ts";
import { logsCommand } from "./logs.ts";
import { metricsCommand } from "./metrics.ts";
import { compareCommand, revisionsCommand, rollbackCommand } from "./revisions.ts";
import {
  CLEAR_OPTIONS,
  pathsOf,
  SETTINGS_OPTIONS,
  type SettingsFlags,
  settingsOf,
} from "./settings.ts";
import {
  finishRollout,
  NO_WAIT,
  pauseCommand,
  resumeCommand,
  startCommand,
  stopCommand,
  type WaitFlags,
} from "./state.ts";
import { deploymentTable, NAME, showDeployment } from "./view.ts";
import { watchCommand } from "./watch.ts";

export const deploymentCommand = group(
  "deployment",
  "See, change, stop and delete deployments; tessera deploy makes them.",
  [
    createCommand,
    listCommand,
    getCommand,
    watchCommand,
    updateCommand,
    revisionsCommand,
    compareCommand,
    rollbackCommand,
    confirmSecretsCommand,
    stopCommand,
    startCommand,
    pauseCommand,
    resumeCommand,
    logsCommand,
    metricsCommand,
    deleteCommand,
  ],
);

interface CreateFlags {
  readonly authorization?: boolean;
}

function createCommand(actions: CloudActions): Command {
  return callCommand<CreateFlags>("create", actions, {
    description: "Register a deployment under a name, before anything is deployed to it.",
    arguments: [["<name>", "a DNS label: lower case letters, digits and hyphens"]],
    options: [
      option("--authorization", "callers need a token with protected endpoint access for it"),
    ],
    examples: ["tessera deployment create summarizer --authorization"],
    run: async (call, { authorization = false }, [name = ""]) => {
      const { organization } = call;
      const made = await call.client.deployments.createDeployment({
        organization,
        name,
        authorization,
      });
      showDeployment(call, made);
      if (!authorization) {
        call.done(
          `Anyone who can reach it may call it: tessera deployment update ${made.name} --authorization asks them for a token`,
        );
      }
    },
  });
}

function listCommand(actions: CloudActions): Command {
  return callCommand<ListFlags>("list", actions, {
    description: "List the deployments, by name.",
    options: LIST_OPTIONS,
    examples: ["tessera deployment list"],
    run: async (call, flags) => {
      const { organization, client } = call;
      await showPages(call, flags, {
        ...{ schema: ListDeploymentsResponseSchema, field: "deployments" },
        text: ({ deployments }) => deploymentTable(deployments),
        read: (page) => client.deployments.listDeployments({ organization, ...page }),
      });
    },
  });
}

function getCommand(actions: CloudActions): Command {
  return callCommand("get", actions, {
    description: "Show how a deployment fares, how it runs and where it is called.",
    arguments: [NAME_OR_HERE],
    examples: ["tessera deployment get summarizer"],
    run: async (call, _flags, [given]) => {
      const { organization } = call;
      const name = await nameOrHere(given);
      showDeployment(
        call,
        await call.client.deployments.getDeployment({ organization, deployment: name }),
      );
    },
  });
}

interface DeleteFlags {
  readonly force?: boolean;
}

function deleteCommand(actions: CloudActions): Command {
  return callCommand<DeleteFlags>("delete", actions, {
    description: "Delete a deployment with its revisions, secrets, logs and tasks.",
    arguments: [NAME],
    options: [option("--force", "also while tasks are queued or running, which are lost")],
    asks: true,
    examples: ["tessera deployment delete summarizer"],
    run: async (call, { force = false }, [name = ""]) => {
      const { organization } = call;
      const lost = force ? ", and lose the tasks that are queued or running" : "";
      await call.insist(`Delete deployment ${name}${lost}?`);
      await call.client.deployments.deleteDeployment({ organization, deployment: name, force });
      call.done(`Deleted deployment ${name}`);
    },
  });
}

// `tessera deployment confirm-secrets`: gives secrets to what somebody else has deployed.

function confirmSecretsCommand(actions: CloudActions): Command {
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

// `tessera deployment update`: changes a deployment's settings and authorization.

interface UpdateFlags extends SettingsFlags, SessionFlags {}

function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description:
      "Change how a deployment runs, and whether callers need a token. Secrets are set by tessera secret. --no-authorization asks for your password where the login's token may not call the deployment itself.",
    arguments: [NAME],
    options: [...SETTINGS_OPTIONS, ...CLEAR_OPTIONS, ...SESSION_OPTIONS],
    examples: [
      "tessera deployment update summarizer --authorization",
      "tessera deployment update summarizer --workers 0..4 --memory 1Gi",
      "tessera deployment update summarizer --require gpu=* --place remote",
    ],
    run: async (call, flags, [name = ""]) => {
      const { deployment, paths } = changeOf(flags);
      const changed = await withTokenOrSession(call, flags, (client, organization, options) =>
        client.deployments.updateDeployment(
          { organization, deployment: { name, ...deployment }, updateMask: { paths } },
          options,
        ),
      );
      showDeployment(call, changed);
      if (flags.authorization === true) {
        call.done(
          plain(
            `Callers need a token: ${actions.program} token create caller --deployment ${name}`,
          ),
        );
      }
    },
  });
}

function changeOf({ authorization, ...flags }: UpdateFlags) {
  const settings = settingsOf(flags);
  const given = pathsOf(settings);
  const paths = [...(authorization === undefined ? [] : ["authorization"]), ...given];
  if (paths.length === 0) {
    throw usageError("say what to change, such as --authorization or --workers 1..4");
  }
  return {
    paths,
    deployment: {
      ...(authorization !== undefined && { authorization }),
      ...(given.length > 0 && { settings }),
    },
  };
}
