/**
 * Requests to mounted servers: each is passed to the server in a worker as it came, and what the
 * server answers is passed back as it comes, piece by piece, or as a WebSocket whose frames nobody
 * reads. The platform keeps what is its own: who calls was found before, and what proved it is not
 * passed on; headers of one connection stay on it.
 */
import { createHash, randomBytes } from "node:crypto";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { Code, type ContextValues } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Deployment } from "../../deployments/deployment.ts";
import { type Problem, problem, toProblem } from "../../errors.ts";
import type { MountRequestOptions } from "../../pool/calls/mount-agents.ts";
import type { MountManifest } from "../../protocol/manifest.ts";
import type { HeldSlot } from "../../queue/calls/calls.ts";
import { isBelow, mountEndpoint } from "../../service/mounts.ts";
import { BODY_DEADLINE_MS, bodyTooLarge, cut, discard } from "../http/body.ts";
import { disconnectSignal } from "../http/disconnect.ts";
import { codeOfStatus } from "../http/error-status.ts";
import { hasUpgrade, takeUpgrade } from "../http/upgrade.ts";
import { namedWorker, WORKER_HEADER } from "../http/worker-header.ts";
import { arrivalOf } from "../rpc/engine/caller.ts";
import { hasBody, requestHeaders, responseHeaders } from "./headers.ts";
import { urlOf } from "./queued.ts";

/** How long one side of a WebSocket has to take what the other one sent before it left. */
const HALF_CLOSED_MS = 1_000;

/** How a server says which of its routes has answered, for metrics. It is not passed on. */
const ROUTE_HEADER = "tessera-route";
const ROUTE_TEMPLATE = /^\/[\x21-\x7e]{0,199}$/;

/** Methods whose requests may be sent again where the server may have seen them. */
const SAFE: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** The server that a request is for. */
interface Mounted {
  readonly deployment: Deployment;
  readonly mount: MountManifest;
}

export interface MountedOptions {
  /** Largest body of a request. */
  readonly maxBodyBytes: number;
  /**
   * Asks again and again whether the caller may go on, and calls back when they may not, or when the
   * server stops. Returns the function that stops it.
   */
  keepStanding(req: FastifyRequest, values: ContextValues, end: () => void): () => void;
}

/**
 * Passes a request to a mounted server. Resolves when the answer has begun. Rejects with
 * BODY_TOO_LARGE, CALL_TIMEOUT, CALL_FAILED, WORKER_LOST, and what `Deployment.admit` and
 * `Calls.hold` refuse with.
 */
export async function answerMounted(
  req: FastifyRequest,
  reply: FastifyReply,
  values: ContextValues,
  { deployment, mount, ...options }: Mounted & MountedOptions,
): Promise<void> {
  let route: string | undefined;
  const onHead = (res: IncomingMessage): void => {
    route = saidRoute(res, mount);
  };
  const begin = async (): Promise<number> => {
    deployment.admit();
    if (Number(req.headers["content-length"] ?? 0) > options.maxBodyBytes) {
      throw tooLarge(options);
    }
    for (let isLast = false; ; isLast = true) {
      const slot = await deployment.calls.hold(mountEndpoint(mount), {
        signal: disconnectSignal(reply),
        worker: namedWorker(req.headers[WORKER_HEADER]),
      });
      const status = await begun({ req, reply, values, mount, slot, onHead, ...options }, isLast);
      if (status !== AGAIN) {
        return status;
      }
    }
  };
  const finished = (code: string): void => {
    const { protocol, atMs } = arrivalOf(values);
    const seconds = (performance.now() - atMs) / 1_000;
    const name = deployment.metrics?.routeOf(mount.path, route) ?? mount.path;
    deployment.metrics?.requestFinished(name, { protocol, code, seconds });
  };
  try {
    const code = codeOfStatus(await begin());
    finished(code === undefined ? "ok" : codeToString(code));
  } catch (thrown) {
    finished(codeToString(toProblem(thrown).code));
    throw thrown;
  }
}

/** The status of an answer, when it has begun; the slot is given back at its end. */
function begun(options: ExchangeOptions, isLast: boolean): Promise<number> {
  try {
    return new Exchange(options).begin(isLast);
  } catch (err) {
    options.slot.release();
    throw err;
  }
}

/** The kept connection ended before the server had the request: another one is taken. */
const AGAIN = -1;

interface ExchangeOptions extends MountedOptions {
  readonly req: FastifyRequest;
  readonly reply: FastifyReply;
  readonly values: ContextValues;
  readonly mount: MountManifest;
  readonly slot: HeldSlot;
  /** The head of the answer has come. */
  onHead(res: IncomingMessage): void;
}

/** One request to a server, and its answer. */
class Exchange {
  readonly #options: ExchangeOptions;
  readonly #request: ClientRequest;
  /** That of a WebSocket over HTTP/2, which this node makes: over HTTP/1.1 it is the caller's. */
  readonly #key: string | undefined;
  readonly #begun = Promise.withResolvers<number>();
  #timer: NodeJS.Timeout | undefined;
  #stopStanding = (): void => {};
  /** A WebSocket is open, which has the slot until its end. */
  #isTunnel = false;
  /** The server has said all. */
  #isWhole = false;
  #bodyTimer: NodeJS.Timeout | undefined;
  #sentBytes = 0;
  /** Why the answer is given up before it has begun. */
  #fault: Error | undefined;

  constructor(options: ExchangeOptions) {
    const { req, values, slot } = options;
    this.#options = options;
    const isConnect = req.method === "CONNECT";
    this.#key = isConnect ? randomBytes(16).toString("base64") : undefined;
    const asked: MountRequestOptions = {
      agent: slot.agent,
      isUpgrade: hasUpgrade(req.raw),
      method: isConnect ? "GET" : req.method,
      path: urlOf(req),
      headers: requestHeaders(req, values, this.#key),
      setHost: false,
    };
    this.#request = request(asked);
  }

  /** The status of the answer, when it begins; `AGAIN` where it is worth another try. */
  begin(isLast: boolean): Promise<number> {
    const { req, reply, mount, slot } = this.#options;
    const { timeoutMs, path } = mount;
    const sent = this.#request;
    this.#timer = setTimeout(() => {
      const message = `the server at ${path} did not begin its answer within ${timeoutMs} ms`;
      this.#giveUp(problem("CALL_TIMEOUT", message));
    }, timeoutMs);
    sent.on("response", (res) => this.#answer(res));
    sent.on("upgrade", (res, socket, head) => this.#tunnel(res, socket, head));
    sent.on("error", (err: NodeJS.ErrnoException) => {
      const isBroken = err.code === "ECONNRESET" || err.code === "EPIPE";
      const isStale = sent.reusedSocket && isBroken && this.#fault === undefined;
      if (isStale && !isLast && SAFE.has(sent.method) && !hasBody(req)) {
        this.#begun.resolve(AGAIN);
      } else {
        this.#begun.reject(this.#fault ?? this.#lost(err));
      }
    });
    sent.once("close", () => {
      clearTimeout(this.#timer);
      clearTimeout(this.#bodyTimer);
      if (!this.#isTunnel) {
        this.#stopStanding();
        slot.release();
        if (!hasUpgrade(req.raw)) {
          discard(req.raw);
        }
      }
    });
    reply.raw.once("close", () => {
      // Over HTTP/2 a stream that was reset looks as if all had been written.
      if (!this.#isWhole) {
        sent.destroy();
      }
    });
    this.#sendBody();
    return this.#begun.promise;
  }

  #sendBody(): void {
    const { req } = this.#options;
    const { raw } = req;
    const sent = this.#request;
    if (!hasBody(req)) {
      sent.end();
      return;
    }
    raw.on("data", (chunk: Buffer) => {
      this.#sentBytes += chunk.length;
      if (this.#sentBytes > this.#options.maxBodyBytes) {
        this.#giveUp(tooLarge(this.#options));
      } else if (!sent.destroyed && !sent.write(chunk)) {
        raw.pause();
      }
    });
    sent.on("drain", () => raw.resume());
    // Over HTTP/2 a stream that was reset ends, too.
    raw.on("end", () => (raw.aborted ? sent.destroy() : sent.end()));
    raw.on("aborted", () => sent.destroy());
    raw.on("error", () => sent.destroy());
    if (raw.httpVersionMajor === 2) {
      // Over HTTP/1.1 Node sees to that.
      this.#bodyTimer = setTimeout(() => !raw.complete && cut(raw), BODY_DEADLINE_MS);
    }
  }

  #answer(res: IncomingMessage): void {
    const { req, reply, mount, slot } = this.#options;
    clearTimeout(this.#timer);
    this.#options.onHead(res);
    const sent = this.#request;
    const { statusCode: status = 0 } = res;
    if (status >= 500 || hasUpgrade(req.raw)) {
      // Servers end a connection on which an application has failed, just after they say so; and
      // what one made of an upgrade that it did not want, nobody knows.
      sent.shouldKeepAlive = false;
    }
    if (reply.raw.headersSent || reply.raw.destroyed || this.#fault !== undefined) {
      sent.destroy();
      return;
    }
    if (status < 200 || status > 599) {
      const message = `the server at ${mount.path} answered with ${status}, which is no status`;
      this.#giveUp(problem("CALL_FAILED", message));
      return;
    }
    if (this.#key !== undefined && status < 300) {
      // To a CONNECT it would say that the WebSocket is open.
      const message = `the server at ${mount.path} has no WebSocket here: it answered with ${status}`;
      this.#giveUp(problem("METHOD_NOT_ALLOWED", message));
      return;
    }
    reply.hijack();
    const { raw } = reply;
    try {
      for (const [name, given] of responseHeaders(res, { reply, worker: slot.ranIn.worker })) {
        raw.setHeader(name, given);
      }
      raw.writeHead(status);
    } catch (cause) {
      const message = `the headers of the server at ${mount.path} cannot be passed on`;
      this.#giveUp(problem("CALL_FAILED", message, { cause }));
      cut(req.raw);
      return;
    }
    this.#keepStanding();
    res.once("end", () => {
      this.#isWhole = true;
      // The server has answered before the end of the body, which it will not get.
      if (!sent.writableFinished) {
        sent.destroy();
      }
    });
    res.on("error", () => cut(req.raw));
    res.on("close", () => {
      if (!res.complete) {
        // Its end would look like that of the whole.
        cut(req.raw);
      }
    });
    res.pipe(raw);
    this.#begun.resolve(status);
  }

  /** Passes the bytes of a WebSocket in both directions until one side has ended. */
  #tunnel(res: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { req, reply, slot, mount } = this.#options;
    clearTimeout(this.#timer);
    this.#options.onHead(res);
    const refuse = (message: string): void => {
      socket.destroy();
      slot.release();
      this.#begun.reject(problem("CALL_FAILED", `the server at ${mount.path} ${message}`));
    };
    if (this.#key !== undefined && res.headers["sec-websocket-accept"] !== acceptOf(this.#key)) {
      refuse("opened something else than the WebSocket that it was asked for");
      return;
    }
    const open = takeUpgrade(req.raw);
    if (open === undefined) {
      refuse("opened a WebSocket that nobody asked for");
      return;
    }
    reply.hijack();
    let caller: Duplex;
    try {
      caller = open(responseHeaders(res, { reply, worker: slot.ranIn.worker, isUpgrade: true }));
    } catch {
      refuse("opened a WebSocket with headers that cannot be passed on");
      cut(req.raw);
      return;
    }
    caller.write(head);
    this.#isTunnel = true;
    this.#keepStanding();
    join(socket, caller, () => {
      this.#stopStanding();
      slot.release();
    });
    this.#begun.resolve(101);
  }

  #keepStanding(): void {
    const { req, values, keepStanding } = this.#options;
    this.#stopStanding = keepStanding(req, values, () => {
      this.#request.destroy();
      cut(req.raw);
    });
  }

  #giveUp(fault: Error): void {
    this.#fault ??= fault;
    this.#begun.reject(fault);
    this.#request.destroy();
  }

  #lost({ code = "", message }: NodeJS.ErrnoException): Problem {
    const { path } = this.#options.mount;
    return code.startsWith("HPE_")
      ? problem("CALL_FAILED", `the server at ${path} answered what is not HTTP: ${message}`)
      : problem("WORKER_LOST", `the server at ${path} ended the connection before it answered`, {
          code: Code.Unavailable,
          retryAfterMs: 1_000,
        });
  }
}

function tooLarge({ maxBodyBytes }: MountedOptions): Error {
  return bodyTooLarge(maxBodyBytes, "the limit of a body with files: send less");
}

/**
 * Connects both directions, and ends one side with the other: not at once, since what it has not
 * read yet would be lost. Calls back when the server's side has ended.
 */
function join(server: Duplex, caller: Duplex, onEnd: () => void): void {
  for (const [from, to] of [
    [server, caller],
    [caller, server],
  ] as const) {
    from.on("error", () => from.destroy());
    from.once("close", () => {
      to.end();
      // Its last bytes would be lost on the way to a side that is not read any more.
      to.resume();
      // Where the other side does not read, or does not end, nothing else would close it.
      setTimeout(() => to.destroy(), HALF_CLOSED_MS).unref();
    });
    from.pipe(to);
  }
  server.once("close", onEnd);
}

/** The answer to the key of a WebSocket (RFC 6455, section 4.2.2). */
function acceptOf(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** The template of the route that a server says has answered; undefined where it says none of its own. */
function saidRoute({ headers }: IncomingMessage, { path }: MountManifest): string | undefined {
  const said = headers[ROUTE_HEADER];
  return typeof said === "string" && ROUTE_TEMPLATE.test(said) && isBelow(said, path)
    ? said
    : undefined;
}
