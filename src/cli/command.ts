/**
 * The framework of commands that call a platform: the token, `--organization`,
 * `--output`, pagination and help.
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Command, Option } from "commander";
import type { Principal, TesseraClient } from "../client/index.ts";
import type { CloudEnvironment } from "../config/cloud.ts";
import { type Context, currentContext } from "./context.ts";
import { parseEndpoint } from "./endpoint.ts";
import { EXIT_CODES } from "./failure.ts";
import type { jsonText, OutputFormat } from "./output.ts";
import type { Table } from "./table.ts";
import { type Streams, Terminal } from "./terminal.ts";

/** What surrounds a command that speaks to a platform; `main.ts` provides it. */
export interface CloudActions {
  readEnvironment(): CloudEnvironment;
  readonly streams: Streams;
  readonly clock: Clock;
  /** How the reader runs this program, such as `npx tessera`. */
  readonly program: string;
}

/** What surrounds a command that runs something on this machine. */
export interface Surroundings extends CloudActions {
  /** The variables of the process. */
  readonly env: NodeJS.ProcessEnv;
  /** Sets the exit code of a command that has done its work, and found something wrong. */
  exit(code: number): void;
}

export interface Clock {
  now(): number;
  /** Rejects when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * How long a call of the command line waits for its answer: one that takes longer has lost its
 * server.
 */
export const CLI_CALL_TIMEOUT_MS = 30_000;

export interface CallFlags {
  readonly output: OutputFormat;
  readonly organization?: string;
  /** For commands that work without a login. */
  readonly endpoint?: string;
  /** Of a command that asks (`asks`): the answer. */
  readonly yes?: boolean;
}

interface RunParts {
  readonly context: Context;
  readonly client: TesseraClient;
  readonly flags: CallFlags;
  readonly jsonText: typeof jsonText;
}

/** One run of a command against a platform. */
export class CommandRun {
  readonly environment: CloudEnvironment;
  readonly context: Context;
  /** False when only `--endpoint` names the platform: then a person has to sign in. */
  readonly loggedIn: boolean;
  readonly client: TesseraClient;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly output: OutputFormat;
  /** The value of `--organization`; empty for the token's own organization. */
  readonly organization: string;
  readonly #jsonText: typeof jsonText;
  readonly #yes: boolean | undefined;
  #principal: Promise<Principal> | undefined;

  private constructor(actions: CloudActions, { context, client, flags, jsonText }: RunParts) {
    this.#jsonText = jsonText;
    this.#yes = flags.yes;
    this.environment = actions.readEnvironment();
    this.context = context;
    this.loggedIn = context.apiToken !== "";
    this.client = client;
    this.terminal = new Terminal(actions.streams);
    this.clock = actions.clock;
    this.output = flags.output;
    this.organization = flags.organization ?? "";
  }

  static async begin(actions: CloudActions, flags: CallFlags): Promise<CommandRun> {
    const context =
      flags.endpoint === undefined
        ? await currentContext(actions.readEnvironment())
        : { endpoint: parseEndpoint("--endpoint", flags.endpoint), apiToken: "" };
    // Loaded on demand: help and completion start sooner without it.
    const { createTesseraClient } = await import("../client/index.ts");
    const { jsonText } = await import("./output.ts");
    const client = createTesseraClient({
      url: context.endpoint,
      ...(context.apiToken !== "" && { token: context.apiToken }),
      timeoutMs: CLI_CALL_TIMEOUT_MS,
    });
    return new CommandRun(actions, { context, client, flags, jsonText });
  }

  /** Returns the principal of the token. */
  principal(): Promise<Principal> {
    this.#principal ??= this.client.auth.getCurrentPrincipal({});
    return this.#principal;
  }

  /** Returns the name of the command's organization. */
  async organizationName(): Promise<string> {
    return this.organization || (await this.principal()).organization;
  }

  /** Writes the answer: the message as JSON, or text for people, if there is any. */
  show<Desc extends DescMessage>(
    desc: Desc,
    message: MessageShape<Desc>,
    text: (message: MessageShape<Desc>) => string | Table | undefined,
  ): void {
    const answer = this.output === "json" ? this.#jsonText(desc, message) : text(message);
    if (answer !== undefined) {
      this.terminal.answer(answer);
    }
  }

  /** Requires confirmation, by prompt or `--yes`, for an action that cannot be undone. */
  async insist(message: string): Promise<void> {
    await this.terminal.insist(message, this.#yes);
  }

  /** Reports success, except in JSON output. */
  done(text: string): void {
    if (this.output === "table") {
      this.terminal.say(text);
    }
  }
}

interface CommandOptions<Flags> {
  readonly description: string;
  /** Arguments in commander's notation (`<token>`, `[name]`), with descriptions. */
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  /** The command's own options. */
  readonly options?: readonly Option[];
  /** It asks before it acts, unless `--yes` answers. Default: false. */
  readonly asks?: boolean;
  /** Example lines, without the prompt. */
  readonly examples: readonly string[];
  run(call: CommandRun, flags: Flags, args: readonly string[]): Promise<void>;
}

interface DeletionOptions extends Pick<CommandOptions<object>, "description" | "examples"> {
  readonly argument: readonly [name: string, description: string];
  /** The kind of thing, such as `budget`. */
  readonly thing: string;
  readonly remove: (call: CommandRun, name: string) => Promise<unknown>;
}

/** Creates `delete` for a kind of thing that an organization has by name; it asks first. */
export function deletion(
  actions: CloudActions,
  { argument, thing, remove, ...options }: DeletionOptions,
): Command {
  return callCommand("delete", actions, {
    ...options,
    arguments: [argument],
    asks: true,
    run: async (call, _flags, [name = ""]) => {
      await call.insist(`Delete the ${thing} ${name}?`);
      await remove(call, name);
      call.done(`Deleted the ${thing} ${name}`);
    },
  });
}

/** Creates a command that calls the platform of the login. */
export function callCommand<Flags extends object = object>(
  name: string,
  actions: CloudActions,
  options: CommandOptions<Flags>,
): Command {
  const command = new Command(name).description(options.description);
  for (const [argument, description] of options.arguments ?? []) {
    command.argument(argument, description);
  }
  for (const option of options.options ?? []) {
    command.addOption(option);
  }
  if (options.asks) {
    command.addOption(YES);
  }
  return command
    .addOption(option("--organization <name>", "the organization (default: the token's own)"))
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", examplesText(options.examples))
    .action(async (...given: readonly unknown[]) => {
      const command = given.at(-1) as Command;
      const flags = command.opts<Flags & CallFlags>();
      const call = await CommandRun.begin(actions, flags);
      try {
        await options.run(call, flags, command.args);
      } catch (err) {
        const { withNearestDeployment } = await import("./nearest-deployment.ts");
        const { deployment } = command.opts<{ readonly deployment?: unknown }>();
        const words = [...command.args, deployment].filter((word) => typeof word === "string");
        throw await withNearestDeployment(err, words, call);
      }
    });
}

/** What makes a command that only groups the commands that these make. */
export function group<Actions = CloudActions>(
  name: string,
  description: string,
  commands: readonly ((actions: Actions) => Command)[],
): (actions: Actions) => Command {
  return (actions) => {
    const command = new Command(name).description(description).addHelpText("after", EXIT_CODES);
    for (const below of commands) {
      command.addCommand(below(actions));
    }
    return command;
  };
}

/** Formats the examples for a command's help. */
export function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((line) => `  $ ${line}`).join("\n")}`;
}

export function option(flags: string, description: string): Option {
  return new Option(flags, description);
}

/** `--output`, which every command has that prints a list or a thing. */
export function outputOption(): Option {
  return option("-o, --output <format>", "for people or for programs")
    .choices(["table", "json"])
    .default("table");
}

/** `--json`, beside `--output`. */
export function jsonOption(): Option {
  return option("--json", "the same as --output json").implies({ output: "json" });
}

/** Creates a repeatable option. */
export function repeatable(flags: string, description: string): Option {
  return option(flags, `${description}; repeatable`).argParser(
    (value: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), value],
  );
}

export const YES = option("-y, --yes", "do not ask for confirmation");
