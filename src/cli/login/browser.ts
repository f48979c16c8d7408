/**
 * Browser login on this machine (RFC 8252): the user approves on a page of the
 * platform, which redirects the browser back with a code. PKCE (RFC 7636) makes
 * the code worthless to anybody else.
 */
import { createHash, randomBytes } from "node:crypto";
import type { LoginResponse, TesseraClient } from "../../client/index.ts";
import { openBrowser } from "../browser.ts";
import { CliError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";
import { Loopback } from "./loopback.ts";

/** Options of both kinds of login without a token. */
export interface LoginOptions {
  readonly endpoint: string;
  /** Empty: the user chooses. */
  readonly organization: string;
  /** The machine's name, for the name of the token. */
  readonly hostName: string;
  readonly client: TesseraClient;
  readonly terminal: Terminal;
}

/** How long `login` waits for the person in the browser. */
const BROWSER_LOGIN_TIMEOUT_MS = 5 * 60_000;

/** Opens the page and waits at most 5 minutes for the answer. */
export async function logInByBrowser(options: LoginOptions): Promise<LoginResponse> {
  const { client, terminal } = options;
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(32).toString("base64url");
  using interruption = terminal.streams.interruption();
  await using loopback = await Loopback.listen(state);
  const { redirectUri } = loopback;
  const url = authorizeUrl(options, { redirectUri, state, challenge: challengeOf(verifier) });
  const opened = await openBrowser(url);
  terminal.say(
    `${opened ? "Your browser opens. If it does not, go to:" : "Go to this page in a browser on this machine:"}\n\n  ${url}\n\nWaiting for your answer there (Ctrl-C gives up; --device takes a browser elsewhere) …`,
  );
  const limit = AbortSignal.timeout(BROWSER_LOGIN_TIMEOUT_MS);
  const { code, answer } = await loopback
    .redirected(AbortSignal.any([interruption.signal, limit]))
    .catch((err: unknown) => {
      throw limit.aborted
        ? new CliError("nobody answered in the browser within 5 minutes", {
            hint: "try again, or use a browser elsewhere: tessera cloud login --device",
          })
        : err;
    });
  try {
    const login = await client.login.redeemLogin({ code, codeVerifier: verifier, redirectUri });
    await answer("You are logged in. You can close this window.");
    return login;
  } catch (err) {
    await answer("The login failed. Your terminal says why; you can close this window.");
    throw err;
  }
}

/** The code challenge of a verifier (RFC 7636, section 4.2). */
export function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

function authorizeUrl(
  { endpoint, organization, hostName }: LoginOptions,
  login: { readonly redirectUri: string; readonly state: string; readonly challenge: string },
): string {
  const query = new URLSearchParams({
    redirect_uri: login.redirectUri,
    code_challenge: login.challenge,
    code_challenge_method: "S256",
    state: login.state,
    host_name: hostName,
    ...(organization !== "" && { organization }),
  });
  return `${endpoint}/cli/authorize?${query}`;
}
