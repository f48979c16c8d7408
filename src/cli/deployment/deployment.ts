/** `tessera deployment`: lists, shows, changes and deletes deployments. */
import type { Command } from "commander";
import { ListDeploymentsResponseSchema } from "../../client/index.ts";
import { type CloudActions, callCommand, group, option } from "../command.ts";
import { NAME_OR_HERE, nameOrHere } from "../here.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { confirmSecretsCommand } from "./confirm-secrets.ts";
import { logsCommand } from "./logs.ts";
import { metricsCommand } from "./metrics.ts";
import { compareCommand, revisionsCommand, rollbackCommand } from "./revisions.ts";
import { pauseCommand, resumeCommand, startCommand, stopCommand } from "./state.ts";
import { updateCommand } from "./update.ts";
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
