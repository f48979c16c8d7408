/** `tessera launcher`: starts machines on which workers join a platform, as many as it wants. */
import { Command } from "commander";
import { type ListLaunchesResponse, ListLaunchesResponseSchema } from "../../client/index.ts";
import type { Flags } from "../../config/settings.ts";
import { type CloudActions, callCommand, type Surroundings } from "../command.ts";
import { CliError } from "../failure.ts";
import { plain } from "../plain.ts";
import { addSettings } from "../settings.ts";
import { stopSignal } from "../stopping.ts";
import { type Table, table } from "../table.ts";

const EXAMPLES = `
Examples:
  $ export TESSERA_LAUNCH_TOKEN=…                   from tessera token create --access launch
  $ tessera launcher --join https://tessera.example.com --on exec
  $ tessera launcher --join https://tessera.example.com --on ssh --host gpu-1 --host gpu-2 --label gpu=h200
  $ tessera launcher --join https://tessera.example.com --on slurm --option=--gres=gpu:1 --lifetime 12h
  $ tessera launcher --join https://tessera.example.com --on ray --option=entrypoint_num_gpus=1
  $ tessera launcher --join https://tessera.example.com --on kubernetes --pod machine.yaml --max 50`;

export async function launcherCommand(surroundings: Surroundings): Promise<Command> {
  const { LAUNCHER_SETTINGS } = await import("../../config/launcher-settings.ts");
  const command = new Command("launcher")
    .description(
      "Start machines on which workers join a platform, as many as its deployments want.",
    )
    .argument("[command...]", "what a machine runs, after -- (default: tessera worker)")
    // What follows the name of a command below belongs to that.
    .enablePositionalOptions()
    .action((machine: readonly string[], flags: Flags) => run(machine, flags, surroundings))
    .addCommand(launcherStatusCommand(surroundings));
  return addSettings(command, LAUNCHER_SETTINGS, { file: "none" }).addHelpText("after", EXAMPLES);
}

/** Runs until a signal. The machines go on. */
async function run(
  machine: readonly string[],
  flags: Flags,
  { env, streams }: Surroundings,
): Promise<void> {
  const { readLauncherConfig } = await import("../../config/launcher.ts");
  const { config, token } = readLauncherConfig(flags, env, machine);
  const leave = new AbortController();
  void stopSignal().then(() => leave.abort());
  const { launch } = await import("../../app/launcher.ts");
  const onStarted = (deployments: readonly string[]): void => {
    const lines = [
      `Starts machines on ${config.on} for ${config.url}`,
      "",
      `  deployments  ${deployments.join(", ") || "none yet"}`,
      `  at most      ${config.maxMachines} machines for each, of ${config.workers} ${config.workers === 1 ? "worker" : "workers"}`,
      "",
      "Ctrl-C ends the launcher. Its machines go on until another one finds them, or their time is over.",
      "",
    ];
    streams.stdout.write(`${lines.join("\n")}\n`);
  };
  const { machines } = await launch(config, token, { leave: leave.signal, env, onStarted }).catch(
    (err: unknown) => {
      throw err instanceof Error && err.name === "LauncherRefused"
        ? new CliError(`${config.url} refuses the launcher: ${err.message}`, {
            hint: "tessera token create --access launch --deployment <name> makes a token for one deployment",
            cause: err,
          })
        : err;
    },
  );
  const left =
    machines === 0
      ? "no machine is left"
      : `${machines} go on: start a launcher to look after them`;
  streams.stderr.write(`\nThe launcher has ended; ${left}\n`);
}

/** `tessera launcher status`: what launchers do for the deployments of an organization. */
function launcherStatusCommand(actions: CloudActions): Command {
  return callCommand("status", actions, {
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
