/** `tessera cloud`: logs in to a platform, shows the login, and logs out. */

import { Code, ConnectError } from "@connectrpc/connect";
import { Command } from "commander";
import { createTesseraClient } from "../../client/index.ts";
import { CLI_CALL_TIMEOUT_MS, type CloudActions, examplesText, group, option } from "../command.ts";
import {
  type Context,
  contextPath,
  currentContext,
  readContext,
  removeContext,
} from "../context.ts";
import { describeFailure } from "../describe.ts";
import { CliError, usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import { Terminal } from "../terminal.ts";
import { type LoginFlags, logIn } from "./login.ts";

const ENVIRONMENT = `
Environment:
  SERVICE_CLOUD_API_KEY       a token, and
  SERVICE_CLOUD_API_ENDPOINT  its platform: both together come before the login`;

const LOGIN_EXAMPLES = [
  "tessera cloud login                                       asks what it needs to know",
  "tessera cloud login --endpoint https://tessera.example.com --device",
  "tessera cloud login --endpoint https://tessera.example.com --api-token - < token.txt",
];

const LOGIN_NOTE = `
--api-token VALUE shows the value to everyone who can list this machine's
processes, and to the shell's history: --api-token - reads it from standard
input, and without the option it is asked for.`;

export const cloudCommand = group("cloud", "Log in to a platform, and out of it.", [
  loginCommand,
  logoutCommand,
  currentContextCommand,
]);

function loginCommand(actions: CloudActions): Command {
  return new Command("login")
    .description("Log in: with a token that is made in the browser, or with one that you have.")
    .addOption(option("--endpoint <url>", "the platform, such as https://tessera.example.com"))
    .addOption(option("--api-token <value>", "log in with this token; - reads standard input"))
    .addOption(option("--browser", "make a token in the browser on this machine"))
    .addOption(option("--device", "make a token in a browser elsewhere, by a code"))
    .addOption(option("--organization <name>", "the organization to log in to"))
    .addHelpText("after", `${examplesText(LOGIN_EXAMPLES)}\n${LOGIN_NOTE}\n${ENVIRONMENT}`)
    .action(async (flags: LoginFlags) => await logIn(actions, flags));
}

function currentContextCommand(actions: CloudActions): Command {
  return new Command("current-context")
    .description(
      "Show endpoint and token that commands use, as JSON. The token is a secret: keep it out of logs and chats.",
    )
    .addHelpText(
      "after",
      `${examplesText(["tessera cloud current-context | jq -r .endpoint"])}\n${ENVIRONMENT}`,
    )
    .action(async () => {
      const { endpoint, apiToken } = await currentContext(actions.readEnvironment());
      const json = JSON.stringify({ endpoint, api_token: apiToken }, null, 2);
      new Terminal(actions.streams).answer(json);
    });
}

interface LogoutFlags {
  readonly revoke?: boolean;
}

function logoutCommand(actions: CloudActions): Command {
  return new Command("logout")
    .description("Forget the login, and delete its token on the platform if you like.")
    .addOption(option("--revoke", "also delete the token: whatever else uses it stops"))
    .addOption(option("--no-revoke", "leave the token as it is"))
    .addHelpText("after", examplesText(["tessera cloud logout --revoke"]))
    .action(async (flags: LogoutFlags) => await logOut(actions, flags));
}

async function logOut(actions: CloudActions, { revoke }: LogoutFlags): Promise<void> {
  const environment = actions.readEnvironment();
  const terminal = new Terminal(actions.streams);
  const path = contextPath(environment);
  // A broken file can still be removed, but its token cannot be deleted.
  const context = await readContext(path).catch((err: unknown) => {
    if (revoke === true) {
      throw err;
    }
    return undefined;
  });
  if (context !== undefined && (revoke ?? (await askToRevoke(terminal)))) {
    await revokeToken(terminal, context);
  }
  const removed = await removeContext(path);
  terminal.say(removed ? "Logged out" : "You were not logged in");
  if (environment.apiKey !== undefined) {
    terminal.say("SERVICE_CLOUD_API_KEY is still set, and commands go on using it");
  }
}

async function askToRevoke(terminal: Terminal): Promise<boolean> {
  return (
    terminal.interactive &&
    (await terminal.confirm("Delete the token too? Whatever else uses it stops.", false))
  );
}

async function revokeToken(terminal: Terminal, { endpoint, apiToken }: Context): Promise<void> {
  const client = createTesseraClient({
    url: endpoint,
    token: apiToken,
    timeoutMs: CLI_CALL_TIMEOUT_MS,
  });
  try {
    const { tokenId, tokenName } = await client.auth.getCurrentPrincipal({});
    if (tokenId === "") {
      throw usageError("the login is by no token that could be deleted");
    }
    await client.tokens.deleteToken({ tokenId });
    terminal.say(plain(`Deleted token ${tokenName}`));
  } catch (err) {
    if (err instanceof ConnectError && err.code === Code.Unauthenticated) {
      terminal.say("The token was not valid any more");
      return;
    }
    const { message, exitCode } = describeFailure(err);
    throw new CliError(`the token was not deleted, and you are still logged in: ${message}`, {
      exitCode,
      hint: "tessera cloud logout --no-revoke forgets it here only",
      cause: err,
    });
  }
}
