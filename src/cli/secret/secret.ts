/** `tessera secret`: lists, sets and deletes the secrets of a deployment, without new code. */
import type { Command } from "commander";
import {
  type Deployment,
  DeploymentStatus,
  type ListSecretsResponse,
  ListSecretsResponseSchema,
} from "../../client/index.ts";
import { type CloudActions, callCommand, group } from "../command.ts";
import { readSecrets, secretSources } from "../deploy/secrets.ts";
import { finishRollout, NO_WAIT, type WaitFlags } from "../deployment/state.ts";
import { CliError, ExitCode } from "../failure.ts";
import { moment } from "../output.ts";
import { plain } from "../plain.ts";
import { type Table, table } from "../table.ts";

const DEPLOYMENT = ["<deployment>", "the deployment's name"] as const;

export const secretCommand = group("secret", "List, set and delete the secrets of a deployment.", [
  listCommand,
  setCommand,
  deleteCommand,
]);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the secrets of a deployment. Their values are shown to nobody.",
    arguments: [DEPLOYMENT],
    examples: ["tessera secret list summarizer"],
    run: async (call, _flags, [deployment = ""]) => {
      const { organization, client } = call;
      const found = await client.deployments.listSecrets({ organization, deployment });
      call.show(ListSecretsResponseSchema, found, secretTable);
    },
  });
}

function setCommand(actions: CloudActions): Command {
  return callCommand<WaitFlags>("set", actions, {
    description:
      "Set secrets of a deployment, also anew, without new code. Workers with them replace the running ones, one after another.",
    arguments: [
      DEPLOYMENT,
      [
        "<NAME...>",
        "a secret, whose value is asked for or read from standard input, or NAME=@file",
      ],
    ],
    options: [NO_WAIT],
    asks: true,
    examples: [
      "tessera secret set summarizer API_KEY",
      "tessera secret set summarizer API_KEY < key.txt",
      "tessera secret set summarizer API_KEY=@key.txt CERT=@cert.pem --yes",
    ],
    run: async (call, { wait }, [deployment = "", ...given]) => {
      const sources = secretSources(given);
      const { organization, client } = call;
      const before = await client.deployments.getDeployment({ organization, deployment });
      const secrets = await readSecrets(sources, call.terminal);
      const names = Object.keys(secrets).join(", ");
      // A program that gives a value has decided.
      if (call.terminal.interactive) {
        await call.insist(`Set ${names} of ${deployment}? ${restartsOf(before)}.`);
      }
      const request = { organization, deployment, secrets, version: before.version };
      const changed = await client.deployments.updateSecrets(request);
      call.done(`Set ${names} of ${deployment}`);
      await finishRollout(call, changed, { wait });
    },
  });
}

function deleteCommand(actions: CloudActions): Command {
  return callCommand<WaitFlags>("delete", actions, {
    description:
      "Delete secrets of a deployment. Workers without them replace the running ones, one after another.",
    arguments: [DEPLOYMENT, ["<NAME...>", "the name of a secret"]],
    options: [NO_WAIT],
    asks: true,
    examples: ["tessera secret delete summarizer API_KEY"],
    run: async (call, { wait }, [deployment = "", ...removeSecrets]) => {
      const { organization, client } = call;
      const before = await client.deployments.getDeployment({ organization, deployment });
      const there = before.settings?.secretNames ?? [];
      const unknown = removeSecrets.filter((name) => !there.includes(name));
      if (unknown.length > 0) {
        throw new CliError(plain(`${deployment} has no secret ${unknown.join(", ")}`), {
          hint: `it has ${there.join(", ") || "none"}`,
          exitCode: ExitCode.notFound,
        });
      }
      const names = removeSecrets.join(", ");
      await call.insist(`Delete ${names} of ${deployment}? ${restartsOf(before)}.`);
      const request = { organization, deployment, removeSecrets, version: before.version };
      const changed = await client.deployments.updateSecrets(request);
      call.done(`Deleted ${names} of ${deployment}`);
      await finishRollout(call, changed, { wait });
    },
  });
}

/** What a change of secrets starts anew. */
function restartsOf({ status, workers }: Deployment): string {
  if (status === DeploymentStatus.STOPPED) {
    return "It is stopped, so nothing starts anew";
  }
  return workers === 0
    ? "No worker runs now, so none is replaced"
    : `Its ${workers === 1 ? "worker is" : `${workers} workers are`} replaced, one after another, and no call fails`;
}

function secretTable({ secrets }: ListSecretsResponse): Table {
  return table(
    ["NAME", "SET", "BY", ""],
    secrets.map(({ name, setAt, setBy, withheld }) => [
      name,
      moment(setAt),
      setBy,
      withheld ? "withheld until confirmed" : "",
    ]),
    { empty: "No secrets", drop: ["BY"] },
  );
}
