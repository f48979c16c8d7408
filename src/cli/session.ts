/**
 * Short-lived sessions for calls that require a person instead of a token: they
 * show a secret, or change a person's role in an organization. The command line
 * signs in with the password, keeps the session in memory, and signs out again.
 */
import type { CallOptions } from "@connectrpc/connect";
import { createTesseraClient, errorFacts, type TesseraClient } from "../client/index.ts";
import { CLI_CALL_TIMEOUT_MS, type CommandRun, option } from "./command.ts";
import { describeFailure } from "./describe.ts";
import { CliError, usageError } from "./failure.ts";

export interface SessionFlags {
  readonly email?: string;
  readonly passwordStdin?: boolean;
}

/** The options of every command that signs in. */
export const SESSION_OPTIONS = [
  option("--email <address>", "the address to sign in with (default: that of the login)"),
  option("--password-stdin", "read the password from standard input"),
];

/** Help text of commands that sign in. */
export const SESSION_NOTE = "Asks for your password: a token is not enough for this.";

/** Help text of commands that sign in only when the token lacks access. */
export const ELEVATED_NOTE =
  "A token cannot give more access than its own: beyond that, this asks for your password.";

/** The server's cookie name, with and without TLS. */
const COOKIE = /^(?:__Host-)?tessera_session=/;

/** Signs in, runs calls with the session, and signs out. */
export async function withSession<T>(
  call: CommandRun,
  flags: SessionFlags,
  run: (client: TesseraClient, options: CallOptions) => Promise<T>,
): Promise<T> {
  const { email, password } = await credentials(call, flags);
  // Without the token: with two credentials it would be unclear which one
  // counts.
  const client = createTesseraClient({
    url: call.context.endpoint,
    timeoutMs: CLI_CALL_TIMEOUT_MS,
  });
  let cookie: string | undefined;
  await client.auth.signIn(
    { email, password },
    {
      onHeader: (headers) => {
        cookie = headers
          .getSetCookie()
          .map((text) => text.split(";")[0] ?? "")
          .find((text) => COOKIE.test(text));
      },
    },
  );
  if (cookie === undefined) {
    throw new CliError("the server signed you in without giving a session: nothing was done");
  }
  const options = { headers: { cookie } };
  try {
    return await run(client, options);
  } finally {
    await client.auth.signOut({}, options).catch(() => {
      call.terminal.say("tessera: signing out failed; the session ends by itself");
    });
  }
}

/**
 * Runs a call with the login's token. If that lacks access, runs it again as
 * the person, who may have more. Without a login it runs as the person at once.
 */
export async function withTokenOrSession<T>(
  call: CommandRun,
  flags: SessionFlags,
  run: (client: TesseraClient, organization: string, options: CallOptions) => Promise<T>,
): Promise<T> {
  if (!call.loggedIn) {
    return withSession(call, flags, (client, options) => run(client, call.organization, options));
  }
  try {
    return await run(call.client, call.organization, {});
  } catch (err) {
    if (errorFacts(err).reason !== "ACCESS_DENIED") {
      throw err;
    }
    if (!call.terminal.interactive && flags.passwordStdin !== true) {
      throw new CliError(describeFailure(err).message ?? "the token has too little access", {
        hint: "you may do it with your password: add --password-stdin",
        cause: err,
      });
    }
    if (call.terminal.interactive) {
      call.terminal.say(
        "The login's token has too little access for this; with your password, you may.",
      );
    }
    const organization = await call.organizationName();
    return await withSession(call, flags, (client, options) => run(client, organization, options));
  }
}

async function credentials(
  call: CommandRun,
  flags: SessionFlags,
): Promise<{ readonly email: string; readonly password: string }> {
  const { terminal } = call;
  const ofLogin = async () => (call.loggedIn ? (await call.principal()).email : "");
  const known = flags.email ?? ((await ofLogin()) || undefined);
  if (flags.passwordStdin === true) {
    if (known === undefined) {
      throw usageError("--email is missing: no login says who you are");
    }
    return { email: known, password: await terminal.readSecret("Password") };
  }
  if (!terminal.interactive) {
    throw usageError(
      "this asks for your password, and there is no terminal: give it by --password-stdin",
    );
  }
  const email = flags.email ?? (await terminal.ask("E-mail address", known));
  return { email, password: await terminal.askSecret("Password") };
}
