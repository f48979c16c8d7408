/**
 * What the commands that speak to a platform have in common: where the token
 * comes from, `--organization`, `--output`, lists in pages, help.
 */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Command, InvalidArgumentError, Option } from "commander";
import { createTesseraClient, type Principal, type TesseraClient } from "../client/index.ts";
import type { CloudEnvironment } from "../config/config.ts";
import { type Context, currentContext } from "./context.ts";
import { parseEndpoint } from "./endpoint.ts";
import { EXIT_CODES } from "./failure.ts";
import { jsonText, type OutputFormat } from "./output.ts";
import { type Streams, Terminal } from "./terminal.ts";

/** What the commands need; the process edge brings it. */
export interface CloudActions {
  readEnvironment(): CloudEnvironment;
  readonly streams: Streams;
  readonly clock: Clock;
}

export interface Clock {
  now(): number;
  /** Rejects when the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** A call that takes longer has lost its server. */
export const CALL_TIMEOUT_MS = 30_000;

export interface CallFlags {
  readonly output: OutputFormat;
  readonly organization?: string;
  /** Of commands that a person can run before they have a token. */
  readonly endpoint?: string;
}

/** One run of a command on a platform. */
export class CommandRun {
  readonly environment: CloudEnvironment;
  readonly context: Context;
  /** False where only `--endpoint` says which platform: then a person has to sign in. */
  readonly loggedIn: boolean;
  readonly client: TesseraClient;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly output: OutputFormat;
  /** As `--organization` names it; empty for the token's own. */
  readonly organization: string;
  #principal: Promise<Principal> | undefined;

  private constructor(actions: CloudActions, context: Context, flags: CallFlags) {
    this.environment = actions.readEnvironment();
    this.context = context;
    this.loggedIn = context.apiToken !== "";
    this.client = createTesseraClient({
      url: context.endpoint,
      ...(this.loggedIn && { token: context.apiToken }),
      timeoutMs: CALL_TIMEOUT_MS,
    });
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
    return new CommandRun(actions, context, flags);
  }

  /** Who the token stands for. */
  principal(): Promise<Principal> {
    this.#principal ??= this.client.auth.getCurrentPrincipal({});
    return this.#principal;
  }

  /** The organization that is meant, by name. */
  async organizationName(): Promise<string> {
    return this.organization || (await this.principal()).organization;
  }

  /** Writes the answer: the message as JSON, or what people read. */
  show<Desc extends DescMessage>(
    desc: Desc,
    message: MessageShape<Desc>,
    text: (message: MessageShape<Desc>) => string,
  ): void {
    this.terminal.answer(this.output === "json" ? jsonText(desc, message) : text(message));
  }

  /** Says that it is done, where nobody waits for JSON. */
  done(text: string): void {
    if (this.output === "table") {
      this.terminal.say(text);
    }
  }
}

export interface CommandOptions<Flags extends CallFlags> {
  readonly description: string;
  /** Arguments as commander writes them: `<token>`, `[name]`, each with what it is. */
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  /** The command's own options, each with what it is. */
  readonly options?: readonly Option[];
  /** Lines of example, without the prompt. */
  readonly examples: readonly string[];
  run(call: CommandRun, flags: Flags, args: readonly string[]): Promise<void>;
}

/** Makes a command that speaks to the platform that is logged in to. */
export function callCommand<Flags extends CallFlags>(
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
  return command
    .addOption(option("--organization <name>", "the organization (default: the token's own)"))
    .addOption(
      option("-o, --output <format>", "for people or for programs")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText("after", examplesText(options.examples))
    .action(async (...given: readonly unknown[]) => {
      const command = given.at(-1) as Command;
      const flags = command.opts<Flags>();
      await options.run(await CommandRun.begin(actions, flags), flags, command.args);
    });
}

/** Makes a command that only has others below it. */
export function group(name: string, description: string, commands: readonly Command[]): Command {
  const command = new Command(name).description(description).addHelpText("after", EXIT_CODES);
  for (const below of commands) {
    command.addCommand(below);
  }
  return command;
}

/** The part of the help that shows how a command is used. */
export function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((line) => `  $ ${line}`).join("\n")}`;
}

export function option(flags: string, description: string): Option {
  return new Option(flags, description);
}

/** An option that may be given again. */
export function repeatable(flags: string, description: string): Option {
  return option(flags, `${description}; repeatable`).argParser(
    (value: string, earlier: readonly string[] | undefined) => [...(earlier ?? []), value],
  );
}

export const YES = option("-y, --yes", "do not ask for confirmation");

export interface YesFlags extends CallFlags {
  readonly yes?: boolean;
}

export interface ListFlags extends CallFlags {
  readonly limit: number;
  readonly pageToken?: string;
}

const MAX_LIMIT = 10_000;
const MAX_PAGE = 1_000;

/** The options of every list that comes in pages. */
export const LIST_OPTIONS: readonly Option[] = [
  option("--limit <count>", "how many to list at most")
    .default(100)
    .argParser((text: string) => {
      const count = Number(text);
      if (!/^\d+$/.test(text) || count < 1 || count > MAX_LIMIT) {
        throw new InvalidArgumentError(`Give a whole number from 1 to ${MAX_LIMIT}.`);
      }
      return count;
    }),
  option("--page-token <token>", "go on where a list with this next_page_token ended"),
];

export interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string;
}

/** Reads pages until there are enough, or no more. */
export async function readPages<Item>(
  { limit, pageToken: first = "" }: Pick<ListFlags, "limit" | "pageToken">,
  read: (page: {
    readonly pageSize: number;
    readonly pageToken: string;
  }) => Promise<ListPage<Item>>,
): Promise<ListPage<Item>> {
  const items: Item[] = [];
  let pageToken = first;
  do {
    const pageSize = Math.min(limit - items.length, MAX_PAGE);
    const page = await read({ pageSize, pageToken });
    items.push(...page.items);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && items.length < limit);
  return { items, nextPageToken: pageToken };
}

/** Says that a list has more than it shows. */
export function mentionMore(call: CommandRun, nextPageToken: string): void {
  if (nextPageToken !== "") {
    call.done("There are more: raise --limit.");
  }
}
