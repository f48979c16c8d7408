/** `tessera worker`: runs the calls of a deployment on this machine, for a platform elsewhere. */
import { Command } from "commander";
import type { StartedWorkers } from "../../app/worker.ts";
import type { Flags } from "../../config/settings.ts";
import type { WorkerConfig } from "../../config/worker.ts";
import type { Surroundings } from "../command.ts";
import { CliError } from "../failure.ts";
import { addSettings } from "../settings.ts";
import { gpuLines, sandboxLines } from "../start/greeting.ts";
import { stopSignal } from "../stopping.ts";
import { workerListCommand } from "./list.ts";

const EXAMPLES = `
Examples:
  $ export TESSERA_WORKER_TOKEN=…                   from tessera token create --access worker
  $ tessera worker --join https://tessera.example.com --deployment digits
  $ tessera worker --join https://tessera.example.com --deployment ocr --label gpu=h200 --workers 2`;

export async function workerCommand(surroundings: Surroundings): Promise<Command> {
  const { WORKER_SETTINGS } = await import("../../config/worker-settings.ts");
  const command = new Command("worker")
    .description("Join this machine to a platform, and run the calls of a deployment on it.")
    // What follows the name of a command below belongs to that.
    .enablePositionalOptions()
    .action((flags: Flags) => run(flags, surroundings))
    .addCommand(workerListCommand(surroundings));
  return addSettings(command, WORKER_SETTINGS, { file: "none" }).addHelpText("after", EXAMPLES);
}

/** Runs until a signal, and then until the calls have ended; a second one ends the process at once. */
async function run(flags: Flags, { env, streams }: Surroundings): Promise<void> {
  const { readWorkerConfig } = await import("../../config/worker.ts");
  const { config, secrets } = readWorkerConfig(flags, env);
  const leave = new AbortController();
  void stopSignal().then((signal) => {
    streams.stderr.write(
      `\n${signal}: taking no more calls, letting those under way finish; again stops at once\n`,
    );
    leave.abort();
  });
  const { runWorkers } = await import("../../app/worker.ts");
  await runWorkers(config, secrets, {
    leave: leave.signal,
    onJoined: (joined) => streams.stdout.write(workerGreeting(joined)),
  }).catch((err: unknown) => {
    throw refused(err, config);
  });
}

/** What a platform says when it refuses workers, with the place. */
function refused(err: unknown, { url }: WorkerConfig): unknown {
  return err instanceof Error && err.name === "AgentRefused"
    ? new CliError(`${url} refuses the worker: ${err.message}`, {
        hint: "tessera token create --access worker --deployment <name> makes a token for one deployment",
        cause: err,
      })
    : err;
}

function workerGreeting(started: StartedWorkers): string {
  const { config, version, sandbox, gpus, python, revision } = started;
  const { deployment, url, workers, dataFolder } = config;
  const labels = Object.entries(config.labels).map(([name, value]) => `${name}=${value}`);
  const count = workers === 1 ? "One worker" : `${workers} workers`;
  const lines = [
    `${count} of ${deployment} joined ${url}, with Tessera ${version}`,
    "",
    `  revision   ${revision}`,
    `  labels     ${labels.join(", ") || "none"}`,
    `  data       ${dataFolder}`,
    ...sandboxLines(sandbox),
    ...gpuLines(gpus),
    ...(python ? [] : ["  python     services in Python are refused: nothing holds them"]),
    "",
    "Ctrl-C finishes the calls under way and stops.",
    "",
  ];
  return `${lines.join("\n")}\n`;
}
