/** `tessera serve`, and `tessera dev`, which also watches the source: one service on this machine. */
import { Command } from "commander";
import type { StartedService } from "../../app/serve.ts";
import type { ServeConfig, ServeFlags, ServeSecrets } from "../../config/config.ts";
import { sayStopping, stopBeforeReady, stopSignal } from "../stopping.ts";
import { type GreetingOptions, greeting } from "./greeting.ts";

/** The dependencies of the command, which `main.ts` provides. */
interface ServeActions {
  readConfig(path: string, flags: ServeFlags): { config: ServeConfig; secrets: ServeSecrets };
  serve(config: ServeConfig, secrets: ServeSecrets): Promise<StartedService>;
  exit(code: number): void;
  readonly exampleOf: GreetingOptions["exampleOf"];
}

const EXAMPLES = `
Examples:
  $ tessera serve service.ts                        serve on http://localhost:3000
  $ tessera serve service.ts --watch                reload when a source file changes
  $ tessera serve service.py --python .venv/bin/python
  $ tessera serve service.ts --database ./tasks.db  keep tasks over restarts
  $ TESSERA_TOKEN=… tessera serve service.ts --host 0.0.0.0

Environment:
  TESSERA_TOKEN      the same as --token, without showing it to who lists processes
  TESSERA_LOG_LEVEL  debug, info (default), warn, error or silent
  OTEL_EXPORTER_OTLP_ENDPOINT
                     where traces are sent (docs/tracing.md); without it there are none
  TESSERA_S3_ENDPOINT, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
                     for --blobs s3://…; without the first it is Amazon's own`;

export function serveCommand(name: "serve" | "dev", actions: ServeActions): Command {
  const isDev = name === "dev";
  const command = new Command(name)
    .description(
      isDev
        ? "Serve one service from its source file, and reload it when that changes: tessera serve --watch."
        : "Serve one service from its source file, for developing it.",
    )
    .argument(
      "<service>",
      "TypeScript or JavaScript file that exports a service; or in Python: file.py, file.py:Name, package.module:Name",
    )
    .option(
      "-p, --port <port>",
      "port for HTTP, Connect and gRPC; 0 takes a free one (default: 3000)",
    )
    .option("--host <host>", "address to listen on; 0.0.0.0 is every one (default: localhost)")
    .option(
      "-w, --workers <count>",
      "worker processes (default: as a BentoML file says, or the cores, from 2 to 4)",
    )
    .option(
      "-d, --database <path>",
      "SQLite file that keeps the queue (default: memory, gone at exit)",
    )
    .option(
      "--blobs <place>",
      "folder, or s3://bucket/prefix, for files above 256 KiB (default: beside the database)",
    )
    .option(
      "--migrate <mode>",
      "auto migrates a database of an earlier version; check refuses to start (default: auto)",
    )
    .option("--token <token>", "ask every caller for this bearer token")
    .option(
      "--cors <origin>",
      "let pages of this origin call from a browser, such as http://localhost:5173; * is all; repeatable",
      repeated,
    )
    .option("--allow-read <path>", "let workers read this file or folder; repeatable", repeated)
    .option("--allow-addons", "let workers load native code, which no other limit holds")
    .option("--allow-workers", "let workers start threads, which may get round the other limits")
    .option(
      "--env <name>",
      "give workers this variable of the environment, or NAME=value; repeatable",
      repeated,
    )
    .option(
      "--python <path>",
      "interpreter of a service in Python (default: VIRTUAL_ENV, .venv beside the service, python3)",
    )
    .option(
      "--ready-timeout <time>",
      "how long the service may take to load, such as 10m (default: 1h)",
    )
    .addHelpText("after", EXAMPLES)
    .action(async (path: string, flags: ServeFlags) =>
      actions.exit(await run(path, isDev ? { watch: true, ...flags } : flags, actions)),
    );
  return isDev
    ? command.option("--no-watch", "serve it as it is now")
    : command.option("--watch", "reload the service when its source changes; the queue stays");
}

/**
 * The token to export, if the user's shell does not have it: in plain on a
 * terminal, never in a log.
 */
function exported({ token }: ServeFlags): string | undefined {
  return token === undefined || process.stdout.isTTY ? token : "<the token>";
}

/** Collects a repeatable option. */
function repeated(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

/** Serves until a signal; a second one ends the process at once. */
async function run(
  path: string,
  flags: ServeFlags,
  { readConfig, serve, exampleOf }: ServeActions,
): Promise<number> {
  const { config, secrets } = readConfig(path, flags);
  const signalled = stopSignal();
  const served = await Promise.race([serve(config, secrets), signalled]);
  if (typeof served === "string") {
    // Loading a service may take minutes.
    stopBeforeReady(served, "the service");
  }
  const token = secrets.token === undefined ? undefined : { toExport: exported(flags) };
  process.stdout.write(greeting(served, { config, token, exampleOf }));
  sayStopping(await signalled, config);
  await served.stop();
  return 0;
}
