/**
 * The HTTP connection to one deployment: requests, their timeout and their
 * retries (`retry.ts`).
 */
import { attended, within } from "./attended.ts";
import { broken, connectionLost, loopbackRoute, type Route } from "./connection-failure.ts";
import { millisecondsOf, type TimeSpan } from "./duration.ts";
import { TimeoutError } from "./errors.ts";
import { ReadError, refusalOf } from "./refusal.ts";
import { mayRepeat, pause, pauseBefore } from "./retry.ts";

export interface ClientOptions {
  /**
   * The deployment's own URL, such as `https://summarizer.acme.example.com`, or
   * that of `tessera serve`. With `deployment`: the platform's URL.
   */
  readonly url: string;
  /** Names the deployment when the URL is the platform's: `acme/summarizer`. */
  readonly deployment?: string;
  /**
   * Sent as a bearer token with every request. A function is called for each
   * request, for tokens that change.
   */
  readonly token?: string | (() => string | Promise<string>);
  /**
   * Additional headers for every request. A function is called for each
   * request, for values that change, such as the `traceparent` of the caller's
   * span.
   */
  readonly headers?: OwnHeaders | (() => OwnHeaders);
  /**
   * Timeout of one call including its retries. Default: 5 minutes, as long as
   * Node waits for a response.
   */
  readonly timeout?: TimeSpan;
  /** Maximum number of retries of a request, where a retry is safe. Default: 5. */
  readonly retries?: number;
  /** The `fetch` function to use. Default: the global one. */
  readonly fetch?: typeof fetch;
}

type OwnHeaders = Readonly<Record<string, string>>;

/** Options of every call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Timeout of this call including its retries. Default: the client's. */
  readonly timeout?: TimeSpan;
}

export interface Sending extends CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Creates the body for each attempt. */
  readonly body?: () => RequestInit["body"];
  readonly headers?: Readonly<Record<string, string>>;
  readonly repeatable: boolean;
  /**
   * How long an attempt waits for the beginning of its answer, and then for each next piece, in
   * milliseconds: a connection may go silent without an end. Default: as long as the call.
   */
  readonly quietMs?: number;
}

/** How long the client waits for a call with its repetitions by default. */
const DEFAULT_CALL_TIMEOUT_MS = 300_000;
/** How often the client repeats a request by default. */
const DEFAULT_RETRIES = 5;
/** Largest value of the client's option `retries`. */
const MAX_RETRIES = 100;
/**
 * Longest wait of one timer, which counts in 31 bits; `src/client` imports nothing of the
 * server, so it has its own.
 */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Silence after which a client takes its event stream for broken and connects again: three
 * intervals of the server's heartbeat, 15 s each.
 */
export const STREAM_HEARTBEAT_TIMEOUT_MS = 45_000;

/**
 * Silence after which a client takes the connection of a request for broken whose answer the
 * server has at hand, or has by a time that the request names; see `Sending.quietMs`.
 */
export const ANSWER_QUIET_MS = 15_000;

export class Connection {
  readonly url: string;
  /** The deployment, where the URL is the platform's. */
  readonly deployment: string | undefined;
  readonly #options: ClientOptions;
  /** Default timeout of one call. */
  readonly timeoutMs: number;
  readonly #retries: number;
  #route: Route;

  /** Throws a `TypeError` for invalid options. */
  constructor(options: ClientOptions) {
    const { timeout, retries = DEFAULT_RETRIES } = options;
    this.url = baseUrl(options.url);
    this.deployment = options.deployment;
    this.#options = options;
    this.#route = { url: this.url, deployment: options.deployment };
    this.timeoutMs =
      timeout === undefined ? DEFAULT_CALL_TIMEOUT_MS : millisecondsOf("timeout", timeout);
    if (!Number.isInteger(retries) || retries < 0 || retries > MAX_RETRIES) {
      throw new TypeError(`retries must be a whole number from 0 to ${MAX_RETRIES}`);
    }
    this.#retries = retries;
    if (typeof options.token === "string") {
      checkToken(options.token);
    }
  }

  /**
   * Sends a request, retries it where that is safe, and reads the successful
   * response. Rejects with a `DeploymentError`, or with the signal's reason.
   */
  async send<T>(
    path: string,
    sending: Sending,
    read: (response: Response) => Promise<T> | T,
  ): Promise<T> {
    const { timeout, signal } = sending;
    const timeoutMs = timeout === undefined ? this.timeoutMs : millisecondsOf("timeout", timeout);
    const endMs = performance.now() + timeoutMs;
    const timer = new AbortController();
    const timing = setTimeout(() => timer.abort(), Math.min(timeoutMs, MAX_TIMER_MS));
    const both = signal ? AbortSignal.any([signal, timer.signal]) : timer.signal;
    try {
      for (let attempt = 0; ; attempt += 1) {
        signal?.throwIfAborted();
        try {
          return await read(await this.#attempt(path, sending, both));
        } catch (err) {
          signal?.throwIfAborted();
          if (timer.signal.aborted) {
            throw timedOut(path, timeoutMs, err);
          }
          const failed = err instanceof ReadError ? connectionLost(err.cause) : err;
          const again = attempt < this.#retries && mayRepeat(failed, sending.repeatable);
          const pauseMs = again ? pauseBefore(failed, attempt) : undefined;
          if (pauseMs === undefined || performance.now() + pauseMs > endMs) {
            throw failed;
          }
          await pause(pauseMs, signal);
        }
      }
    } finally {
      clearTimeout(timing);
    }
  }

  async #attempt(path: string, sending: Sending, signal: AbortSignal): Promise<Response> {
    const { method = "GET", body, quietMs } = sending;
    const { fetch = globalThis.fetch, headers: own = {} } = this.#options;
    const { url, deployment } = this.#route;
    const token = await this.#token();
    const headers = new Headers(typeof own === "function" ? own() : own);
    const ours = {
      ...sending.headers,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(deployment !== undefined && { "tessera-deployment": deployment }),
    };
    for (const [name, value] of Object.entries(ours)) {
      headers.set(name, value);
    }
    // Also ends the connection, so that the next attempt gets another one.
    const silence = quietMs === undefined ? undefined : new AbortController();
    const init: RequestInit = {
      method,
      body: body?.() ?? null,
      signal: silence ? AbortSignal.any([signal, silence.signal]) : signal,
      // A redirect would turn a POST into a GET, or send the token to another host.
      redirect: "manual",
      headers,
    };
    const answer = fetch(url + path, init);
    const attentive = quietMs === undefined ? answer : within(answer, quietMs);
    const response = await attentive.catch((err: unknown) => {
      silence?.abort(err);
      const loopback = url === this.url ? loopbackRoute(this.url, err) : undefined;
      if (loopback === undefined) {
        throw broken(this.url, err);
      }
      this.#route = { ...loopback, ...(deployment !== undefined && { deployment }) };
      return undefined;
    });
    if (response === undefined) {
      return this.#attempt(path, sending, signal);
    }
    if (response.ok) {
      return quietMs === undefined ? response : attended(response, quietMs);
    }
    throw await refusalOf(response);
  }

  async #token(): Promise<string | undefined> {
    const { token } = this.#options;
    return typeof token === "function" ? checkToken(await token()) : token;
  }
}

function timedOut(path: string, timeoutMs: number, cause: unknown): TimeoutError {
  return new TimeoutError(
    `${path.split("?", 1)[0]} had no answer within ${timeoutMs} ms: raise timeout, or submit what takes long as a task`,
    { cause },
  );
}

function baseUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["http:", "https:"].includes(parsed.protocol)) {
    throw new TypeError(
      `url must be such as https://summarizer.acme.example.com, not ${JSON.stringify(url)}`,
    );
  }
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}`;
}

function checkToken(token: string): string {
  // The error that Headers throws for an invalid value contains the value.
  if (!/^[!-~]+$/.test(token)) {
    throw new TypeError("the token has characters that cannot be sent in a header");
  }
  return token;
}
