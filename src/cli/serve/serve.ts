/** `tessera serve`, and `tessera dev`, which also watches the source: one service on this machine. */
import { Command } from "commander";
import type { Flags } from "../../config/settings.ts";
import type { Surroundings } from "../command.ts";
import { addSettings } from "../settings.ts";
import { sayStopping, stopBeforeReady, stopSignal, stopWithin } from "../stopping.ts";
import { greeting } from "./greeting.ts";

const EXAMPLES = `
  TESSERA_S3_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
      for --blobs s3://…; without the first it is Amazon's own

Examples:
  $ tessera serve service.ts                        serve on http://localhost:3000
  $ tessera serve service.ts --watch                reload when a source file changes
  $ tessera serve service.py --python .venv/bin/python
  $ tessera serve                                   what ./tessera.yaml says
  $ tessera serve service.ts --database ./tasks.db  keep tasks over restarts
  $ TESSERA_TOKEN=… tessera serve service.ts --host 0.0.0.0`;

export async function serveCommand(
  name: "serve" | "dev",
  surroundings: Surroundings,
): Promise<Command> {
  const { SERVE_SETTINGS } = await import("../../config/serve-settings.ts");
  const { watch, ...others } = SERVE_SETTINGS;
  const isDev = name === "dev";
  const command = new Command(name)
    .description(
      isDev
        ? "Serve one service from its source file, and reload it when that changes: tessera serve --watch."
        : "Serve one service from its source file, for developing it.",
    )
    .argument(
      "[service]",
      "TypeScript or JavaScript file that exports a service; in Python: file.py, file.py:Name, package.module:Name; or a folder whose tessera.yaml names one, or a command (default: what ./tessera.yaml says)",
    )
    .action((path: string | undefined, flags: Flags) => run(path ?? ".", flags, surroundings));
  addSettings(command, isDev ? others : SERVE_SETTINGS, { file: undefined });
  if (isDev) {
    // Commander gives watch then, true unless this flag is there.
    command.option("--no-watch", "serve it as it is now");
  }
  return command.addHelpText("after", EXAMPLES);
}

/** Serves until a signal; a second one ends the process at once. */
async function run(path: string, flags: Flags, { env, streams }: Surroundings): Promise<void> {
  const { readServeConfig } = await import("../../config/serve.ts");
  const read = readServeConfig(path, flags, env);
  // Before what takes longer to load than this.
  streams.stderr.write(`Loading ${path === "." ? "what ./tessera.yaml says" : path} …\n`);
  const { servedIn } = await import("../deploy/plan.ts");
  const { servicePath, program, env: variables } = await servedIn(path);
  const config = { ...read.config, servicePath };
  const secrets = { ...read.secrets, workerEnv: { ...variables, ...read.secrets.workerEnv } };
  const signalled = stopSignal();
  const serve = async () =>
    await (await import("../../app/serve.ts")).serveService(config, secrets, program);
  const served = await Promise.race([serve(), signalled]);
  if (typeof served === "string") {
    // Loading a service may take minutes.
    stopBeforeReady(served, "the service");
  }
  const { exampleOf } = await import("../../service/openapi/example.ts");
  // Without a flag, the user's shell has it.
  const isNew = flags.token !== undefined;
  const toExport = isNew ? shownToken(secrets.token) : undefined;
  const token = secrets.token === undefined ? undefined : { toExport };
  streams.stdout.write(greeting(served, { config, token, exampleOf }));
  sayStopping(await signalled, config);
  await stopWithin(config.drainMs, () => served.stop());
}

/** In plain on a terminal, never in a log. */
function shownToken(token: string | undefined): string | undefined {
  return process.stdout.isTTY ? token : "<the token>";
}
