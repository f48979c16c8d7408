/**
 * The target of commands that call a deployment, and the token for it. `--url`
 * gives the deployment's own URL; `--deployment` names one on the platform of
 * the login. The login's token is sent only to that platform and the hosts
 * below it; any other server needs its own token.
 */
import { Command, type Option } from "commander";
import { type ClientOptions, Connection } from "../client/deployment.ts";
import {
  type CallFlags,
  CLI_CALL_TIMEOUT_MS,
  type Clock,
  type CloudActions,
  examplesText,
  jsonOption,
  option,
  outputOption,
} from "./command.ts";
import {
  type Context,
  contextPath,
  currentContext,
  environmentContext,
  readContext,
} from "./context.ts";
import { parseDuration } from "./durations.ts";
import { parseEndpoint, parseToken } from "./endpoint.ts";
import { EXIT_CODES, usageError } from "./failure.ts";
import type { OutputFormat } from "./output.ts";
import type { Table } from "./table.ts";
import { Terminal } from "./terminal.ts";

export interface TargetFlags extends Pick<CallFlags, "organization"> {
  /** `json` for programs; otherwise for people. */
  readonly output?: string;
  readonly url?: string;
  readonly deployment?: string;
  readonly token?: string;
  readonly timeout?: string;
}

/** One run of a command against a deployment. */
export interface DeploymentTarget {
  readonly connection: Connection;
  /** For the platform's RPCs about the same deployment. */
  readonly options: ClientOptions;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly output: OutputFormat;
  /** It is about all deployments of the organization. */
  readonly isOfAll: boolean;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
  /** `--timeout`, for commands that wait. */
  readonly timeoutMs: number | undefined;
}

interface TargetCommandOptions<Flags extends TargetFlags> {
  readonly description: string;
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  readonly options?: readonly Option[];
  readonly examples: readonly string[];
  /** Help text after the examples. */
  readonly note?: string;
  /**
   * Whether the command has `--output`; false when its output is the function's
   * own. Default: true.
   */
  readonly formats?: boolean;
  /** Without a deployment it is about all of the organization that is logged in to. Default: false. */
  readonly isOfAll?: boolean;
  run(target: DeploymentTarget, flags: Flags, args: readonly string[]): Promise<void>;
}

/** Creates a command that calls a deployment. */
export function targetCommand<Flags extends TargetFlags>(
  name: string,
  actions: CloudActions,
  options: TargetCommandOptions<Flags>,
): Command {
  const command = new Command(name).description(options.description);
  for (const [argument, description] of options.arguments ?? []) {
    command.argument(argument, description);
  }
  const outputs = options.formats === false ? [] : [outputOption(), jsonOption()];
  for (const each of [...(options.options ?? []), ...TARGET_OPTIONS, ...outputs]) {
    command.addOption(each);
  }
  const { examples, note = "" } = options;
  return command
    .addHelpText("after", `${examplesText(examples)}${note}\n${EXIT_CODES}`)
    .action(async () => {
      const flags = command.opts<Flags>();
      using interruption = actions.streams.interruption();
      const isOfAll =
        options.isOfAll === true && flags.url === undefined && flags.deployment === undefined;
      const target = await resolve(actions, { ...flags, isOfAll }, interruption.signal);
      await options.run(target, flags, command.args);
    });
}

const TARGET_OPTIONS: readonly Option[] = [
  option("--url <url>", "the address of the deployment, or of tessera serve"),
  option(
    "-d, --deployment <name>",
    "a deployment of the platform that is logged in to (default: the name in ./tessera.yaml)",
  ),
  option("--organization <name>", "whose deployment it is (default: the token's own)"),
  option("--token <token>", "the token to call with (default: TESSERA_TOKEN, else the login's)"),
  option("--timeout <duration>", "give up after so long, such as 30s (default: 5m for a call)"),
];

async function resolve(
  actions: CloudActions,
  flags: TargetFlags & { readonly isOfAll: boolean },
  signal: AbortSignal,
): Promise<DeploymentTarget> {
  const timeoutMs =
    flags.timeout === undefined ? undefined : parseDuration("--timeout", flags.timeout);
  const options = {
    ...(flags.isOfAll
      ? await organizationOptions(actions, flags)
      : await clientOptions(actions, flags)),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
  };
  return {
    connection: new Connection(options),
    options,
    terminal: new Terminal(actions.streams),
    clock: actions.clock,
    output: flags.output === "json" ? "json" : "table",
    isOfAll: flags.isOfAll,
    signal,
    timeoutMs,
  };
}

/** The platform that is logged in to, for what is about all deployments. */
async function organizationOptions(
  actions: CloudActions,
  { token }: TargetFlags,
): Promise<ClientOptions> {
  const login = await currentContext(actions.readEnvironment());
  const given = token === undefined ? undefined : parseToken("--token", token);
  return { url: login.endpoint, token: given ?? login.apiToken };
}

/** Where and as whom the flags say to call. */
export async function clientOptions(
  actions: CloudActions,
  flags: TargetFlags,
): Promise<ClientOptions> {
  const { url, organization } = flags;
  if (url !== undefined && flags.deployment !== undefined) {
    throw usageError("--url and --deployment are two ways to say which deployment: give one");
  }
  const deployment = flags.deployment ?? (url === undefined ? await deploymentOfFolder() : "");
  const environment = actions.readEnvironment();
  const given =
    flags.token === undefined
      ? environment.token && parseToken("TESSERA_TOKEN", environment.token)
      : parseToken("--token", flags.token);
  if (url !== undefined) {
    const address = parseEndpoint("--url", url);
    const login =
      given === undefined
        ? (environmentContext(environment) ?? (await readContext(contextPath(environment))))
        : undefined;
    const token = given ?? (login && isBelow(address, login.endpoint) ? login.apiToken : undefined);
    return { url: address, ...(token !== undefined && { token }) };
  }
  const login = await currentContext(environment);
  const name = deployment.includes("/")
    ? deployment
    : `${organization ?? (await ownOrganization(login))}/${deployment}`;
  return { url: login.endpoint, deployment: name, token: given ?? login.apiToken };
}

/** What nobody has named. */
async function deploymentOfFolder(): Promise<string> {
  const { deploymentHere } = await import("./here.ts");
  const name = await deploymentHere();
  if (name === undefined) {
    throw usageError(
      "it is not said which deployment: give --deployment <name>, or --url <url>",
      "a tessera.yaml in this folder with a line such as name: summarizer says it, too",
    );
  }
  return name;
}

/** Asks over plain HTTP: a call starts sooner without the platform's client. */
async function ownOrganization({ endpoint, apiToken }: Context): Promise<string> {
  const connection = new Connection({
    url: endpoint,
    token: apiToken,
    timeout: CLI_CALL_TIMEOUT_MS,
  });
  const { organization = "" } = await connection.send(
    "/api/v1/me",
    { repeatable: true },
    async (response) => (await response.json()) as { readonly organization?: string },
  );
  return organization;
}

/** Whether a URL is on the platform's host or below it, on the same port. */
function isBelow(url: string, endpoint: string): boolean {
  const [of, platform] = [new URL(url), new URL(endpoint)];
  return (
    of.protocol === platform.protocol &&
    (of.host === platform.host || of.host.endsWith(`.${platform.host}`))
  );
}

/** Writes JSON, or text for people. */
export function show(
  { terminal, output }: Pick<DeploymentTarget, "terminal" | "output">,
  json: unknown,
  text: () => string | Table,
): void {
  terminal.answer(output === "json" ? JSON.stringify(json, null, 2) : text());
}
