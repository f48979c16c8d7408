/**
 * The loopback redirect receiver of a browser login: a server on 127.0.0.1 that
 * waits for the redirect with the code (RFC 8252, section 7.3). The first
 * request for its path decides; `state` tells whether it belongs to this login.
 * The response is sent when the login is done, so that the page shows its
 * outcome.
 */
import { timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { raceAbort } from "../../time/race.ts";
import { CliError } from "../failure.ts";

const PATH = "/callback";

/** A received redirect. */
interface Redirected {
  readonly code: string;
  /** Responds to the browser. */
  answer(text: string): Promise<void>;
}

/** Waits for the redirect; listens until disposed. */
export class Loopback implements AsyncDisposable {
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
