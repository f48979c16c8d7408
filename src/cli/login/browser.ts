/**
 * Browser login on this machine (RFC 8252): the user approves on a page of the
 * platform, which redirects the browser back with a code. PKCE (RFC 7636) makes
 * the code worthless to anybody else.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { LoginResponse, TesseraClient } from "../../client/index.ts";
import { raceAbort } from "../../time/race.ts";
import { openBrowser } from "../browser.ts";
import { CliError } from "../failure.ts";
import type { Terminal } from "../terminal.ts";

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

// The loopback redirect receiver of a browser login: a server on 127.0.0.1 that
// waits for the redirect with the code (RFC 8252, section 7.3). The first
// request for its path decides; `state` tells whether it belongs to this login.
// The response is sent when the login is done, so that the page shows its
// outcome.

const PATH = "/callback";

/** A received redirect. */
interface Redirected {
  readonly code: string;
  /** Responds to the browser. */
  answer(text: string): Promise<void>;
}

/** Waits for the redirect; listens until disposed. */
class Loopback implements AsyncDisposable {
  readonly #server: Server;
  readonly #state: string;
  readonly #arrived = Promise.withResolvers<Redirected>();
  #decided = false;

  private constructor(state: string) {
    this.#state = state;
    this.#server = createServer((req, res) => this.#receive(req, res));
    // Marks the rejection as handled even if nothing awaits it yet.
    this.#arrived.promise.catch(() => {});
  }

  /** Listens on a free port. */
  static async listen(state: string): Promise<Loopback> {
    const loopback = new Loopback(state);
    loopback.#server.listen(0, "127.0.0.1");
    await once(loopback.#server, "listening");
    return loopback;
  }

  /** The redirect URI of this login. */
  get redirectUri(): string {
    return `http://127.0.0.1:${this.#port}${PATH}`;
  }

  /**
   * Resolves with the redirect; rejects when the login was refused, or with the
   * signal's reason.
   */
  redirected(signal: AbortSignal): Promise<Redirected> {
    return raceAbort(this.#arrived.promise, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) {
      const closed = once(this.#server, "close");
      this.#server.close();
      this.#server.closeAllConnections();
      await closed;
    }
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #receive(req: IncomingMessage, res: ServerResponse): void {
    const url = new URL(req.url ?? "/", "http://127.0.0.1");
    // Protects against DNS rebinding: a page whose name resolves to this address
    // would send its own host.
    const isRedirect =
      req.method === "GET" &&
      url.pathname === PATH &&
      req.headers.host === `127.0.0.1:${this.#port}`;
    if (!isRedirect || this.#decided) {
      void respond(res, 404, "There is nothing here.");
      return;
    }
    this.#decided = true;
    try {
      const code = this.#codeOf(url.searchParams);
      this.#arrived.resolve({ code, answer: (text) => respond(res, 200, text) });
    } catch (err) {
      const answered = respond(res, 400, "The login failed. Your terminal says why.");
      void answered.then(() => this.#arrived.reject(err));
    }
  }

  #codeOf(query: URLSearchParams): string {
    const given = Buffer.from(query.get("state") ?? "");
    const expected = Buffer.from(this.#state);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      throw new CliError("an answer came that does not belong to this login", {
        hint: "try again; if it happens again, log in with --device",
      });
    }
    if (query.has("error")) {
      throw new CliError("the login was refused in the browser");
    }
    const code = query.get("code");
    if (!code) {
      throw new CliError("the browser brought no code: try again");
    }
    return code;
  }
}

/** Sends a page; resolves when it is sent or the connection has closed. */
function respond(res: ServerResponse, status: number, text: string): Promise<void> {
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Tessera</title><p>${text}</p></html>\n`;
  return new Promise((resolve) => {
    res.once("close", resolve);
    res.writeHead(status, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      connection: "close",
    });
    res.end(page);
  });
}
