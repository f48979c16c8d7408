/**
 * `tessera cloud login`: gets a token in one of three ways (pasted, through the
 * browser on this machine, or by device code), checks it, and only then stores
 * it. A token that was created for this login but cannot be stored is deleted.
 */
import { hostname } from "node:os";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  createTesseraClient,
  errorFacts,
  type LoginResponse,
  type Principal,
  PrincipalKind,
  type TesseraClient,
  TokenAccess,
} from "../../client/index.ts";
import { CLI_CALL_TIMEOUT_MS, type Clock, type CloudActions } from "../command.ts";
import { contextPath, readContext, writeContext } from "../context.ts";
import { parseEndpoint, parseToken } from "../endpoint.ts";
import { CliError, ExitCode, usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import { Terminal } from "../terminal.ts";
import { type LoginOptions, logInByBrowser } from "./browser.ts";

export interface LoginFlags {
  readonly apiToken?: string;
  readonly endpoint?: string;
  readonly browser?: boolean;
  readonly device?: boolean;
  readonly organization?: string;
}

type Way = "paste" | "browser" | "device";

/** A token, and whether it was created for this login. */
interface Obtained {
  readonly apiToken: string;
  readonly tokenId: string | undefined;
}

export async function logIn(actions: CloudActions, flags: LoginFlags): Promise<void> {
  const environment = actions.readEnvironment();
  const terminal = new Terminal(actions.streams);
  const way = givenWay(flags);
  if (!terminal.interactive) {
    refuseQuestions(flags, way);
  }
  const endpoint =
    flags.endpoint === undefined
      ? await askEndpoint(terminal, contextPath(environment))
      : parseEndpoint("--endpoint", flags.endpoint);
  warnOfPlainHttp(terminal, endpoint);
  const chosen = way ?? (await askWay(terminal, environment.canOpenBrowser));
  const { apiToken, tokenId } = await obtain(chosen, { actions, terminal, endpoint, flags });
  const client = createTesseraClient({
    url: endpoint,
    token: apiToken,
    timeoutMs: CLI_CALL_TIMEOUT_MS,
  });
  let principal: Principal;
  try {
    principal = await check(client, endpoint, flags.organization);
    await writeContext(environment, { endpoint, apiToken });
  } catch (err) {
    if (tokenId !== undefined) {
      await client.tokens.deleteToken({ tokenId }).catch(() => {
        terminal.say("tessera: the token that was made for this login could not be deleted");
      });
    }
    throw err;
  }
  const { organization, email, tokenName } = principal;
  terminal.answer(
    plain(`Logged in to organization ${organization} as ${email || `token ${tokenName}`}`),
  );
  if (environment.apiKey !== undefined || environment.apiEndpoint !== undefined) {
    terminal.say(
      "SERVICE_CLOUD_API_KEY and SERVICE_CLOUD_API_ENDPOINT are set and come before this login: unset them to use it",
    );
  }
}

function givenWay({ apiToken, browser, device }: LoginFlags): Way | undefined {
  const ways: Way[] = [];
  if (apiToken !== undefined) {
    ways.push("paste");
  }
  if (browser === true) {
    ways.push("browser");
  }
  if (device === true) {
    ways.push("device");
  }
  if (ways.length > 1) {
    throw usageError("--api-token, --browser and --device are three ways to log in: give one");
  }
  return ways[0];
}

/** Without a terminal, all values have to be given as flags. */
function refuseQuestions({ endpoint }: LoginFlags, way: Way | undefined): void {
  if (endpoint === undefined) {
    throw usageError("--endpoint is missing, and there is no terminal to ask for it");
  }
  if (way === undefined) {
    throw usageError(
      "how to log in is missing, and there is no terminal to ask: --api-token -, --browser or --device",
    );
  }
}

async function askEndpoint(terminal: Terminal, path: string): Promise<string> {
  // An unreadable login is about to be replaced, so it only provides no
  // default.
  const earlier = await readContext(path).catch(() => undefined);
  return parseEndpoint(
    "the endpoint",
    await terminal.ask("Address of the platform", earlier?.endpoint),
  );
}

async function askWay(terminal: Terminal, canOpenBrowser: boolean): Promise<Way> {
  return await terminal.choose("How do you want to log in?", [
    { name: "Create a token in the browser", value: canOpenBrowser ? "browser" : "device" },
    { name: "Paste a token", value: "paste" },
  ]);
}

function warnOfPlainHttp(terminal: Terminal, endpoint: string): void {
  const { protocol, hostname: host } = new URL(endpoint);
  const local =
    host === "localhost" || host.endsWith(".localhost") || /^(?:127\.|\[::1\])/.test(host);
  if (protocol === "http:" && !local) {
    terminal.say(
      `Over http://, everyone between here and ${host} can read the token: use https:// where you can`,
    );
  }
}

interface Obtaining {
  readonly actions: CloudActions;
  readonly terminal: Terminal;
  readonly endpoint: string;
  readonly flags: LoginFlags;
}

async function obtain(way: Way, obtaining: Obtaining): Promise<Obtained> {
  const { actions, terminal, endpoint, flags } = obtaining;
  if (way === "paste") {
    return { apiToken: await pasted(terminal, flags.apiToken), tokenId: undefined };
  }
  const options: LoginOptions = {
    endpoint,
    organization: flags.organization ?? "",
    hostName: hostname().slice(0, 100),
    client: createTesseraClient({ url: endpoint, timeoutMs: CLI_CALL_TIMEOUT_MS }),
    terminal,
  };
  const { value, token } =
    way === "browser" ? await logInByBrowser(options) : await logInByDevice(options, actions.clock);
  return { apiToken: parseToken("what the server sent", value), tokenId: token?.tokenId };
}

async function pasted(terminal: Terminal, given: string | undefined): Promise<string> {
  switch (given) {
    case undefined:
      return parseToken("what you pasted", await terminal.askSecret("Token"));
    case "-":
      return parseToken("what came in on standard input", await terminal.readSecret("Token"));
    default:
      return parseToken("--api-token", given);
  }
}

/** Checks the token with the server. Throws unless it can be used for a login. */
async function check(
  client: TesseraClient,
  endpoint: string,
  organization: string | undefined,
): Promise<Principal> {
  const principal = await client.auth.getCurrentPrincipal({});
  const { kind, access } = principal;
  if (kind === PrincipalKind.SHARED_TOKEN || kind === PrincipalKind.ANONYMOUS) {
    throw new CliError(
      `${endpoint} is served by tessera serve, which has no organizations: there is nothing to log in to`,
    );
  }
  if (!access.includes(TokenAccess.DEVELOPER_OPERATIONS)) {
    throw new CliError("this token cannot log in: it lacks developer operations access", {
      hint: "make one that has it: tessera token create <name> --developer-operations",
    });
  }
  if (organization !== undefined && organization !== principal.organization) {
    throw new CliError(
      `this token is for organization ${plain(principal.organization)}, not ${organization}`,
      { exitCode: ExitCode.failed },
    );
  }
  return principal;
}

// Device login for a machine without a browser (RFC 8628): it shows a code, the
// user enters it in a browser anywhere, and the command polls for the approval.

/** Interval of a device login's polls where the server names none, as RFC 8628 says. */
const DEFAULT_DEVICE_POLL_INTERVAL_MS = 5_000;
/**
 * How much the interval of a device login's polls grows when the server says `slow_down` (RFC
 * 8628, section 3.5).
 */
const DEVICE_POLL_SLOW_DOWN_MS = 5_000;
/**
 * How long `login` polls for a device code: the server ends the code after 10 minutes; this is
 * for one that never says so.
 */
const DEVICE_LOGIN_TIMEOUT_MS = 15 * 60_000;

/** Shows the code and waits for the answer. */
async function logInByDevice(options: LoginOptions, clock: Clock): Promise<LoginResponse> {
  const { client, terminal, hostName } = options;
  using interruption = terminal.streams.interruption();
  const { signal } = interruption;
  const started = await client.login.startDeviceLogin({ hostName }, { signal });
  terminal.say(
    `Open this page in any browser, and allow it there if it shows the code ${plain(started.userCode)}:\n\n  ${plain(started.verificationUrlComplete)}\n\nWaiting for your answer there (Ctrl-C gives up) …`,
  );
  const { interval } = started;
  let waitMs =
    interval === undefined
      ? DEFAULT_DEVICE_POLL_INTERVAL_MS
      : Number(interval.seconds) * 1000 + interval.nanos / 1_000_000;
  const endMs = clock.now() + DEVICE_LOGIN_TIMEOUT_MS;
  while (clock.now() < endMs) {
    await clock.wait(waitMs, signal);
    try {
      const { deviceCode } = started;
      return await client.login.redeemDeviceLogin({ deviceCode }, { signal });
    } catch (err) {
      waitMs = nextWait(err, waitMs);
    }
  }
  throw expired();
}

/** Returns the delay before the next poll; throws when polling is pointless. */
function nextWait(err: unknown, waitMs: number): number {
  switch (errorFacts(err).reason) {
    case "LOGIN_PENDING":
      return waitMs;
    case "LOGIN_SLOW_DOWN":
      return waitMs + DEVICE_POLL_SLOW_DOWN_MS;
    case "LOGIN_DENIED":
      throw new CliError("the login was refused in the browser");
    case "LOGIN_INVALID":
      throw expired();
    default:
      // The server restarts, or the network is briefly unreachable.
      if (
        err instanceof ConnectError &&
        [Code.Unavailable, Code.Aborted, Code.DeadlineExceeded].includes(err.code)
      ) {
        return Math.min(waitMs * 2, 60_000);
      }
      throw err;
  }
}

function expired(): CliError {
  return new CliError("the code has expired: nobody answered in time", {
    hint: "start again: tessera cloud login --device",
  });
}
