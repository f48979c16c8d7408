/** `tessera launcher status`: what launchers do for the deployments of an organization. */
import type { Command } from "commander";
import { type ListLaunchesResponse, ListLaunchesResponseSchema } from "../../client/index.ts";
import { type CallFlags, type CloudActions, callCommand } from "../command.ts";
import { plain } from "../plain.ts";
import { type Table, table } from "../table.ts";

export function launcherStatusCommand(actions: CloudActions): Command {
  return callCommand<CallFlags>("status", actions, {
    description:
      "Show what launchers do: how many workers each deployment wants from other machines, and which machines start, have joined or fail, and why.",
    examples: ["tessera launcher status", "tessera launcher status -o json"],
    run: async (call) => {
      const { client, organization } = call;
      const list = await client.launchers.listLaunches({ organization });
      call.show(ListLaunchesResponseSchema, list, launchTable);
    },
  });
}

function launchTable({ launches }: ListLaunchesResponse): Table {
  return table(
    ["DEPLOYMENT", "WORKERS WANTED", "MACHINES", "STARTING", "JOINED", "FAILED", "RUNS ON", "WHY"],
    launches.map((one) => [
      one.deployment,
      String(one.workersWanted),
      String(one.machines),
      String(one.starting),
      String(one.joined),
      String(one.failed),
      `${one.on}, by ${plain(one.hostname)}`,
      plain(one.reason),
    ]),
    { empty: "No launcher is at work", drop: ["RUNS ON"] },
  );
}
