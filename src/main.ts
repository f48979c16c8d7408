/** The entry point of the command line: arguments in, exit code out. */
import { setTimeout as wait } from "node:timers/promises";
import { Command, CommanderError } from "commander";
import type { Build } from "./cli/build/options.ts";
import type { Clock, CloudActions } from "./cli/command.ts";
import {
  COMMANDS,
  type CommandName,
  type CommandSummary,
  commandNamed,
  type LoadCommand,
  summarized,
} from "./cli/commands.ts";
import { ExitCode, withoutTokens } from "./cli/failure.ts";
import { programCall } from "./cli/npx.ts";
import { processStreams, type Streams } from "./cli/terminal.ts";
import { isRunByNpm, readCloudEnvironment } from "./config/cloud.ts";
import { version } from "./version.ts";

const EXAMPLES = `
Examples:
  $ tessera init my-service     make a project of a small service
  $ tessera serve service.ts    serve on http://localhost:3000
  $ tessera serve --help        every option
  $ tessera dev service.ts      the same, reloaded when its source changes
  $ tessera start               run the platform: people, tokens, deployments
  $ tessera cloud login         log in to a platform
  $ tessera deploy service.ts   deploy to it

Topics:
  $ tessera help environment    the variables that the command line reads
  $ tessera help exit-codes     what the exit codes mean`;

/** The environment of a run: streams, variables and clock. */
interface Surroundings {
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
  const load = commandLoader({
    cloud: {
      readEnvironment: () => readCloudEnvironment(env),
      streams,
      clock,
      program: programCall(isRunByNpm(env)),
    },
    env,
    exit: (code) => {
      exitCode = code;
    },
  });
  const program = new Command("tessera")
    .description(
      "Serves functions over HTTP, Connect and gRPC, and runs the slow ones as durable tasks.",
    )
    .version(version)
    .addHelpText("after", EXAMPLES);
  let ran: Command | undefined;
  program.hook("preAction", (_program, command) => {
    ran = command;
  });
  // Only the command that is named is loaded: the others are a line in the help.
  const named = commandNamed(argv);
  for (const each of COMMANDS) {
    const command = each.name === named ? await load(named) : summarized(each);
    program.addCommand(command, { hidden: (each as CommandSummary).hidden === true });
  }
  prepare(program, "", streams);
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (err) {
    return err instanceof CommanderError ? usage(err) : await fail(err, streams, ran);
  }
  return exitCode;
}

interface Parts {
  readonly cloud: CloudActions;
  readonly env: NodeJS.ProcessEnv | undefined;
  readonly exit: (code: number) => void;
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
      outputError: (text, write) => write(text.replace(/^error: /, "tessera: ")),
    });
  for (const below of command.commands) {
    prepare(below, name, streams);
  }
}

/** The exit code when Commander itself has written its message or the help. */
function usage({ exitCode }: CommanderError): number {
  return exitCode === 0 ? ExitCode.done : ExitCode.usage;
}

async function fail(
  err: unknown,
  { stderr }: Streams,
  command: Command | undefined,
): Promise<number> {
  const { describeFailure } = await import("./cli/describe.ts");
  const { message, hint, exitCode } = describeFailure(err, command);
  if (message !== undefined) {
    stderr.write(`tessera: ${withoutTokens(message)}\n`);
  }
  if (hint !== undefined) {
    stderr.write(`${withoutTokens(hint)}\n`);
  }
  return exitCode;
}

/** Returns what loads a command with all that it runs. What runs is loaded later still. */
function commandLoader({ cloud, env, exit }: Parts): LoadCommand {
  const { streams, program } = cloud;
  const config = () => import("./config/config.ts");
  const build: Build = async (path, options, { python: named, ...flags }) => {
    const { buildArtifact } = await import("./artifacts/build.ts");
    const { readBuildEnvironment } = await config();
    const { vendor = false, buildFromSource: fromSource = [] } = flags;
    const python = { ...readBuildEnvironment(env), named, vendor, fromSource };
    return buildArtifact(path, { ...options, python });
  };
  const serve = async (name: "serve" | "dev"): Promise<Command> => {
    const { serveCommand } = await import("./cli/serve/serve.ts");
    const { readServeConfig } = await config();
    const { exampleOf } = await import("./service/openapi/example.ts");
    return serveCommand(name, {
      readConfig: readServeConfig,
      serve: async (...given) => (await import("./app/serve.ts")).serveService(...given),
      exampleOf,
      exit,
    });
  };
  const loaders: Readonly<Record<CommandName, () => Promise<Command>>> = {
    init: async () => (await import("./cli/init/init.ts")).initCommand({ streams, program }),
    serve: () => serve("serve"),
    dev: () => serve("dev"),
    build: async () => {
      const { buildCommand } = await import("./cli/build/build.ts");
      const { fileNameOf } = await import("./artifacts/index-file.ts");
      return buildCommand({
        build,
        pack: async (...of) => (await import("./artifacts/pack.ts")).packArtifact(...of),
        fileNameOf,
        streams,
      });
    },
    start: async () => {
      const { startCommand } = await import("./cli/start/start.ts");
      const { readStartConfig, START_SETTINGS } = await config();
      return startCommand({
        settings: START_SETTINGS,
        readConfig: (flags) => readStartConfig(flags, env),
        start: async (...given) => (await import("./app/start.ts")).startPlatform(...given),
        exit,
        program,
        streams,
      });
    },
    admin: () => loadAdmin({ cloud, env, exit }),
    worker: async () => {
      const { workerCommand } = await import("./cli/worker/worker.ts");
      const { workerListCommand } = await import("./cli/worker/list.ts");
      const { readWorkerConfig, WORKER_SETTINGS } = await config();
      return workerCommand({
        settings: WORKER_SETTINGS,
        readConfig: (flags) => readWorkerConfig(flags, env),
        run: async (...given) => (await import("./app/worker.ts")).runWorkers(...given),
        exit,
        streams,
        below: [workerListCommand(cloud)],
      });
    },
    deploy: async () => {
      const { deployCommand } = await import("./cli/deploy/deploy.ts");
      const { openFile } = await import("./artifacts/pack.ts");
      const { writeIndex } = await import("./artifacts/index-file.ts");
      const { exampleOf } = await import("./service/openapi/example.ts");
      return deployCommand({
        ...cloud,
        build,
        load: async (path) => (await import("./artifacts/load.ts")).loadArtifact(path),
        loadManifest: async (path) => (await import("./artifacts/load.ts")).loadManifest(path),
        openFile,
        writeIndex,
        exampleOf,
      });
    },
    call: async () => (await import("./cli/call/call.ts")).endpointCallCommand(cloud),
    task: async () => (await import("./cli/task/task.ts")).taskCommand(cloud),
    client: async () => (await import("./cli/client.ts")).clientCommand(cloud),
    cloud: async () => (await import("./cli/login/cloud.ts")).cloudCommand(cloud),
    open: async () => (await import("./cli/open.ts")).openCommand(cloud),
    token: async () => (await import("./cli/token/token.ts")).tokenCommand(cloud),
    org: async () => (await import("./cli/organization/organization.ts")).orgCommand(cloud),
    member: async () => (await import("./cli/organization/member.ts")).memberCommand(cloud),
    deployment: async () =>
      (await import("./cli/deployment/deployment.ts")).deploymentCommand(cloud),
    audit: async () => (await import("./cli/organization/audit.ts")).auditCommand(cloud),
    completion: async () =>
      (await import("./cli/completion/completion.ts")).completionCommand(streams),
    environment: async () => (await import("./cli/topics.ts")).topicCommand("environment", streams),
    "exit-codes": async () => (await import("./cli/topics.ts")).topicCommand("exit-codes", streams),
    complete: async () =>
      (await import("./cli/completion/complete.ts")).completeCommand({ ...cloud, load }),
  };
  const load: LoadCommand = (name) => loaders[name]();
  return load;
}

async function loadAdmin({
  cloud: { streams, clock, program },
  env,
  exit,
}: Parts): Promise<Command> {
  const { adminCommand } = await import("./cli/admin/admin.ts");
  const { BACKUP_SETTINGS, CHECK_SETTINGS, DATA_SETTINGS, ...config } = await import(
    "./config/config.ts"
  );
  return adminCommand({
    settings: DATA_SETTINGS,
    readConfig: (flags) => config.readDataConfig(flags, env),
    open: async (...given) => (await import("./app/operate/open.ts")).openAdministration(...given),
    backup: {
      settings: BACKUP_SETTINGS,
      readConfig: (flags) => config.readBackupConfig(flags, env),
      take: async (...of) => (await import("./app/operate/backup/take.ts")).takeBackup(...of),
      verify: async (...of) => (await import("./app/operate/backup/verify.ts")).verifyBackup(...of),
      restore: async (...of) =>
        (await import("./app/operate/backup/restore.ts")).restoreBackup(...of),
      now: clock.now,
      exit,
      streams,
    },
    migrate: async (...given) => (await import("./app/operate/migrate.ts")).migrateData(...given),
    check: {
      settings: CHECK_SETTINGS,
      readConfig: (flags) => config.readCheckConfig(flags, env),
      check: async (...given) => (await import("./app/operate/check.ts")).checkMachine(...given),
      exit,
      streams,
    },
    streams,
    program,
  });
}
