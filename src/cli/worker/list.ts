/** `tessera worker list`: the workers of deployments, and where each runs. */
import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  type DeploymentWorker,
  type ListWorkersResponse,
  ListWorkersResponseSchema,
  type WorkerMachine,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "../command.ts";
import { labelsText } from "../machine/machine.ts";
import { moment } from "../output.ts";
import { plain } from "../plain.ts";
import { type Table, table } from "../table.ts";

interface ListFlags {
  readonly deployment?: string;
}

/** Deployments in one read of their names. */
const MAX_DEPLOYMENTS_PER_PAGE = 1_000;

export function workerListCommand(actions: CloudActions): Command {
  return callCommand<ListFlags>("list", actions, {
    description:
      "List the workers of a deployment, or of all, and where each runs: those that nodes have started, and those that have joined from other machines.",
    options: [option("--deployment <name>", "only those of this deployment")],
    examples: ["tessera worker list", "tessera worker list --deployment summarizer -o json"],
    run: async (call, { deployment }) => {
      const names = deployment === undefined ? await deploymentNames(call) : [deployment];
      const workers: DeploymentWorker[] = [];
      let omitted = 0;
      for (const name of names) {
        const read = await listOf(call, name);
        workers.push(...read.workers);
        omitted += read.omitted;
      }
      const list = create(ListWorkersResponseSchema, { workers, omitted });
      call.show(ListWorkersResponseSchema, list, workerTable);
      if (omitted > 0) {
        call.done(`and ${omitted} more, which their nodes do not tell of`);
      }
    },
  });
}

async function listOf(call: CommandRun, deployment: string): Promise<ListWorkersResponse> {
  const { client, organization } = call;
  return await client.deployments.listWorkers({ organization, deployment });
}

async function deploymentNames({ client, organization }: CommandRun): Promise<string[]> {
  const names: string[] = [];
  let pageToken = "";
  do {
    const request = { organization, pageSize: MAX_DEPLOYMENTS_PER_PAGE, pageToken };
    const page = await client.deployments.listDeployments(request);
    names.push(...page.deployments.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return names;
}

function workerTable({ workers }: ListWorkersResponse): Table {
  return table(
    ["WORKER", "DEPLOYMENT", "REVISION", "STATE", "CALLS", "RUNS ON", "LABELS", "SINCE"],
    workers.map((one) => [
      one.workerId,
      one.deployment,
      one.revision === 0 ? "" : String(one.revision),
      stateText(one),
      String(one.calls),
      one.machine === undefined ? nodeText(one) : machineText(one.machine),
      labelsText(one.machine?.labels ?? {}),
      moment(one.startedAt),
    ]),
    { empty: "No workers", drop: ["LABELS", "SINCE", "CALLS"] },
  );
}

function stateText({ ready, fault, machine }: DeploymentWorker): string {
  if (machine?.drained === true) {
    return "drained";
  }
  const why = fault === "" ? "" : `: ${plain(fault)}`;
  return ready ? "ready" : `not ready${why}`;
}

function nodeText({ node, gpus }: DeploymentWorker): string {
  return [`node ${node}`, ...gpus].join(", ");
}

function machineText({ hostname, platform }: WorkerMachine): string {
  return platform === "" ? hostname : `${hostname} (${platform})`;
}
