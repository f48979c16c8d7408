/** One deployment over HTTP: requests and their time. `repeat.ts` says which are sent again. */
import { broken, connectionLost, loopbackRoute, type Route } from "./breakage.ts";
import { millisecondsOf, type TimeSpan } from "./duration.ts";
import { TimeoutError } from "./errors.ts";
import { ReadError, refusalOf } from "./refusal.ts";
import { mayRepeat, pause, pauseBefore } from "./repeat.ts";

export interface ClientOptions {
  /**
   * The deployment's own address, such as `https://summarizer.acme.example.com`,
   * or that of `tessera serve`; with `deployment`, that of the platform.
   */
  readonly url: string;
  /** Names the deployment where the host of the URL does not: `acme/summarizer`. */
  readonly deployment?: string;
  /** Sent as bearer token with every request; a function is asked each time, for tokens that change. */
  readonly token?: string | (() => string | Promise<string>);
  /**
   * Sent with every request besides; a function is asked each time, for what
   * changes, such as the `traceparent` of the caller's span.
   */
  readonly headers?: OwnHeaders | (() => OwnHeaders);
  /** What one call may take in all, its repetitions included. Default: 5 minutes; as long as Node waits for an answer. */
  readonly timeout?: TimeSpan;
  /** How often a request is sent again at most, where that is safe. Default: 5. */
  readonly retries?: number;
  /** Default: the global one. */
  readonly fetch?: typeof fetch;
}

export type OwnHeaders = Readonly<Record<string, string>>;

/** What every call takes. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Default: the client's. */
  readonly timeout?: TimeSpan;
}

export interface Sending extends CallOptions {
  readonly method?: "GET" | "POST" | "PUT";
  /** Made anew for each attempt. */
  readonly body?: () => RequestInit["body"];
  readonly headers?: Readonly<Record<string, string>>;
  readonly repeatable: boolean;
}

const DEFAULT_TIMEOUT_MS = 300_000;
const DEFAULT_RETRIES = 5;
const MAX_RETRIES = 100;
/** Timers hold no more. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Connection {
  readonly url: string;
  readonly #options: ClientOptions;
  /** What one call may take by default. */
  readonly timeoutMs: number;
  readonly #retries: number;
  #route: Route;

  /** Throws a `TypeError` on options that make no sense. */
  constructor(options: ClientOptions) {
    const { timeout, retries = DEFAULT_RETRIES } = options;
    this.url = baseUrl(options.url);
    this.#options = options;
    this.#route = { url: this.url, deployment: options.deployment };
    this.timeoutMs =
      timeout === undefined ? DEFAULT_TIMEOUT_MS : millisecondsOf("timeout", timeout);
    if (!Number.isInteger(retries) || retries < 0 || retries > MAX_RETRIES) {
      throw new TypeError(`retries must be a whole number from 0 to ${MAX_RETRIES}`);
    }
    this.#retries = retries;
    if (typeof options.token === "string") {
      checkToken(options.token);
    }
  }

  /**
   * Sends a request until it has an answer that is a success, and reads that.
   * Rejects with a `DeploymentError`, or with the signal's reason.
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
    const { method = "GET", body } = sending;
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
    const init: RequestInit = {
      method,
      body: body?.() ?? null,
      signal,
      // A redirect would turn a POST into a GET, or carry the token elsewhere.
      redirect: "manual",
      headers,
    };
    const response = await fetch(url + path, init).catch((err: unknown) => {
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
      return response;
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
  // What Headers says about a value that it refuses has the value in it.
  if (!/^[!-~]+$/.test(token)) {
    throw new TypeError("the token has characters that cannot be sent in a header");
  }
  return token;
}
