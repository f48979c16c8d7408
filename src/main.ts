/** The entry point of the command line: arguments in, exit code out. */
import { setTimeout as wait } from "node:timers/promises";
import { Command, CommanderError } from "commander";
import { fileNameOf, writeIndex } from "./artifacts/index-file.ts";
import { openFile } from "./artifacts/pack.ts";
import { adminCommand } from "./cli/admin.ts";
import { buildCommand } from "./cli/build.ts";
import type { Build } from "./cli/build-options.ts";
import type { Clock } from "./cli/command.ts";
import { deployCommand } from "./cli/deploy/deploy.ts";
import { describeFailure, ExitCode, withoutTokens } from "./cli/failure.ts";
import { initCommand } from "./cli/init/init.ts";
import { platformCommands } from "./cli/platform.ts";
import { serveCommand } from "./cli/serve.ts";
import { startCommand } from "./cli/start.ts";
import { processStreams, type Streams } from "./cli/terminal.ts";
import { workerListCommand } from "./cli/worker/list.ts";
import { workerCommand } from "./cli/worker/worker.ts";
import {
  BACKUP_SETTINGS,
  CHECK_SETTINGS,
  DATA_SETTINGS,
  readBackupConfig,
  readBuildEnvironment,
  readCheckConfig,
  readCloudEnvironment,
  readDataConfig,
  readServeConfig,
  readStartConfig,
  readWorkerConfig,
  START_SETTINGS,
  WORKER_SETTINGS,
} from "./config/config.ts";
import { exampleOf } from "./service/openapi/example.ts";
import { version } from "./version.ts";

const EXAMPLES = `
Examples:
  $ tessera init my-service     make a project of a small service
  $ tessera serve service.ts    serve on http://localhost:3000
  $ tessera serve --help        every option
  $ tessera start               run the platform: people, tokens, deployments
  $ tessera cloud login         log in to a platform
  $ tessera deploy service.ts   deploy to it`;

/** The environment of a run: streams, variables and clock. */
export interface Surroundings {
  /** Default: the streams of this process. */
  readonly streams?: Streams;
  /** Variables that the platform's commands read. Default: those of this process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
}

/** Runs the program; resolves with its exit code. */
export async function main(
  argv: readonly string[],
  surroundings: Surroundings = {},
): Promise<number> {
  const { streams = processStreams(), env, clock = CLOCK } = surroundings;
  let exitCode: number = ExitCode.done;
  const program = new Command("tessera")
    .description(
      "Serves functions over HTTP, Connect and gRPC, and runs the slow ones as durable tasks.",
    )
    .version(version)
    .addHelpText("after", EXAMPLES);
  const exit = (code: number): void => {
    exitCode = code;
  };
  program.addCommand(initCommand({ streams }));
  // What a command runs is loaded when it is needed: every other command starts sooner without it.
  program.addCommand(
    serveCommand({
      readConfig: readServeConfig,
      serve: async (...given) => (await import("./app/serve.ts")).serveService(...given),
      exampleOf,
      exit,
    }),
  );
  // Loaded on demand: every other command starts sooner without it.
  const build: Build = async (path, options, { python: named, vendor = false }) => {
    const { buildArtifact } = await import("./artifacts/build.ts");
    return buildArtifact(path, {
      ...options,
      python: { ...readBuildEnvironment(env), named, vendor },
    });
  };
  program.addCommand(
    buildCommand({
      build,
      pack: async (...of) => (await import("./artifacts/pack.ts")).packArtifact(...of),
      fileNameOf,
      streams,
    }),
  );
  program.addCommand(
    startCommand({
      settings: START_SETTINGS,
      readConfig: (flags) => readStartConfig(flags, env),
      start: async (...given) => (await import("./app/start.ts")).startPlatform(...given),
      exit,
      streams,
    }),
  );
  program.addCommand(
    adminCommand({
      settings: DATA_SETTINGS,
      readConfig: (flags) => readDataConfig(flags, env),
      open: async (...given) =>
        (await import("./app/operate/open.ts")).openAdministration(...given),
      backup: {
        settings: BACKUP_SETTINGS,
        readConfig: (flags) => readBackupConfig(flags, env),
        take: async (...of) => (await import("./app/operate/backup/take.ts")).takeBackup(...of),
        verify: async (...of) =>
          (await import("./app/operate/backup/verify.ts")).verifyBackup(...of),
        restore: async (...of) =>
          (await import("./app/operate/backup/restore.ts")).restoreBackup(...of),
        now: clock.now,
        exit,
        streams,
      },
      migrate: async (...given) => (await import("./app/operate/migrate.ts")).migrateData(...given),
      check: {
        settings: CHECK_SETTINGS,
        readConfig: (flags) => readCheckConfig(flags, env),
        check: async (...given) => (await import("./app/operate/check.ts")).checkMachine(...given),
        exit,
        streams,
      },
      streams,
    }),
  );
  const cloud = { readEnvironment: () => readCloudEnvironment(env), streams, clock };
  program.addCommand(
    workerCommand({
      settings: WORKER_SETTINGS,
      readConfig: (flags) => readWorkerConfig(flags, env),
      run: async (...given) => (await import("./app/worker.ts")).runWorkers(...given),
      exit,
      streams,
      below: [workerListCommand(cloud)],
    }),
  );
  program.addCommand(
    deployCommand({
      ...cloud,
      build,
      load: async (path) => (await import("./artifacts/load.ts")).loadArtifact(path),
      loadManifest: async (path) => (await import("./artifacts/load.ts")).loadManifest(path),
      openFile,
      writeIndex,
      exampleOf,
    }),
  );
  for (const command of platformCommands(cloud)) {
    program.addCommand(command);
  }
  prepare(program, "", streams);
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (err) {
    return err instanceof CommanderError ? usage(err) : fail(err, streams);
  }
  return exitCode;
}

const CLOCK: Clock = {
  now: () => Date.now(),
  wait: (ms, signal) => wait(ms, undefined, { signal }),
};

/** Sets output and errors of each command: one added by `addCommand` inherits nothing. */
function prepare(command: Command, above: string, streams: Streams): void {
  const { stdout, stderr } = streams;
  const name = `${above} ${command.name()}`.trim();
  command
    .exitOverride()
    .showHelpAfterError(`(${name} --help shows what there is)`)
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(withoutTokens(text)),
    });
  for (const below of command.commands) {
    prepare(below, name, streams);
  }
}

/** The exit code when Commander itself has written its message or the help. */
function usage({ exitCode }: CommanderError): number {
  return exitCode === 0 ? ExitCode.done : ExitCode.usage;
}

function fail(err: unknown, { stderr }: Streams): number {
  const { message, hint, exitCode } = describeFailure(err);
  if (message !== undefined) {
    stderr.write(`tessera: ${withoutTokens(message)}\n`);
  }
  if (hint !== undefined) {
    stderr.write(`${withoutTokens(hint)}\n`);
  }
  return exitCode;
}
