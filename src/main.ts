/** The entry point of the command line: arguments in, exit code out. */
import { setTimeout as wait } from "node:timers/promises";
import { Command, CommanderError } from "commander";
import type { Clock, Surroundings } from "./cli/command.ts";
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

const CLOCK: Clock = {
  now: () => Date.now(),
  wait: (ms, signal) => wait(ms, undefined, { signal }),
};

/** Runs the program; resolves with its exit code. By default it is that of this process. */
export async function main(
  argv: readonly string[],
  given: Partial<Pick<Surroundings, "streams" | "env" | "clock">> = {},
): Promise<number> {
  const { streams = processStreams(), env = process.env, clock = CLOCK } = given;
  let exitCode: number = ExitCode.done;
  const load = commandLoader({
    streams,
    env,
    clock,
    program: programCall(isRunByNpm(env)),
    readEnvironment: () => readCloudEnvironment(env),
    exit: (code) => {
      exitCode = code;
    },
  });
  const program = new Command("tessera")
    .description(
      "Serves functions over HTTP, Connect and gRPC, and runs the slow ones as durable tasks.",
    )
    .version(version)
    // What follows the name of a command is for that command.
    .enablePositionalOptions()
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

/**
 * Returns what loads a command with the options of its help. What a command runs on this machine,
 * it loads when it runs.
 */
function commandLoader(of: Surroundings): LoadCommand {
  const loaders: Readonly<Record<CommandName, () => Promise<Command>>> = {
    init: async () => (await import("./cli/init/init.ts")).initCommand(of),
    serve: async () => (await import("./cli/serve/serve.ts")).serveCommand("serve", of),
    dev: async () => (await import("./cli/serve/serve.ts")).serveCommand("dev", of),
    build: async () => (await import("./cli/build/build.ts")).buildCommand(of),
    start: async () => (await import("./cli/start/start.ts")).startCommand(of),
    admin: async () => (await import("./cli/admin/admin.ts")).adminCommand(of),
    launcher: async () => (await import("./cli/launcher/launcher.ts")).launcherCommand(of),
    worker: async () => (await import("./cli/worker/worker.ts")).workerCommand(of),
    deploy: async () => (await import("./cli/deploy/deploy.ts")).deployCommand(of),
    call: async () => (await import("./cli/call/call.ts")).endpointCallCommand(of),
    task: async () => (await import("./cli/task/task.ts")).taskCommand(of),
    client: async () => (await import("./cli/client.ts")).clientCommand(of),
    cloud: async () => (await import("./cli/login/cloud.ts")).cloudCommand(of),
    open: async () => (await import("./cli/open.ts")).openCommand(of),
    token: async () => (await import("./cli/token/token.ts")).tokenCommand(of),
    org: async () => (await import("./cli/organization/organization.ts")).orgCommand(of),
    member: async () => (await import("./cli/organization/member.ts")).memberCommand(of),
    deployment: async () => (await import("./cli/deployment/deployment.ts")).deploymentCommand(of),
    machine: async () => (await import("./cli/machine/machine.ts")).machineCommand(of),
    webhook: async () => (await import("./cli/webhook/webhook.ts")).webhookCommand(of),
    secret: async () => (await import("./cli/secret/secret.ts")).secretCommand(of),
    schedule: async () => (await import("./cli/schedule/schedule.ts")).scheduleCommand(of),
    model: async () => (await import("./cli/model/model.ts")).modelCommand(of),
    alert: async () => (await import("./cli/alert/alert.ts")).alertCommand(of),
    usage: async () => (await import("./cli/usage/usage.ts")).usageCommand(of),
    budget: async () => (await import("./cli/usage/budget.ts")).budgetCommand(of),
    audit: async () => (await import("./cli/organization/audit.ts")).auditCommand(of),
    completion: async () => (await import("./cli/completion/completion.ts")).completionCommand(of),
    environment: async () => (await import("./cli/topics.ts")).topicCommand("environment", of),
    "exit-codes": async () => (await import("./cli/topics.ts")).topicCommand("exit-codes", of),
    complete: async () =>
      (await import("./cli/completion/complete.ts")).completeCommand({ ...of, load }),
  };
  const load: LoadCommand = (name) => loaders[name]();
  return load;
}
