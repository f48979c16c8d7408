/**
 * Requests to mounted servers: each is passed to the server in a worker as it came, and what the
 * server answers is passed back as it comes, piece by piece, or as a WebSocket whose frames nobody
 * reads. The platform keeps what is its own: who calls was found before, and what proved it is not
 * passed on; headers of one connection stay on it.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { Code, type ContextValues } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Deployment } from "../../deployments/deployment.ts";
import { type Problem, problem, toProblem } from "../../errors.ts";
import type {
  AnswerHead,
  AnswerListener,
  ConnectionFault,
  MountConnection,
} from "../../pool/calls/mount-connection.ts";
import type { EndpointManifest, MountManifest } from "../../protocol/manifest.ts";
import type { HeldSlot } from "../../queue/calls/calls.ts";
import { isBelow, mountEndpoint } from "../../service/mounts.ts";
import { BODY_DEADLINE_MS, bodyTooLarge, cut, discard } from "../http/body.ts";
import { disconnectSignal } from "../http/disconnect.ts";
import { codeOfStatus } from "../http/error-status.ts";
import { hasUpgrade, takeUpgrade } from "../http/upgrade.ts";
import { namedWorker, WORKER_HEADER } from "../http/worker-header.ts";
import { arrivalOf, keyOfCall, tokenIdOf } from "../rpc/engine/caller.ts";
import { byName, hasBody, requestHead, responseHeaders } from "./headers.ts";
import { urlOf } from "./queued.ts";

/** How long one side of a WebSocket has to take what the other one sent before it left. */
const HALF_CLOSED_MS = 1_000;

/** How a server says which of its routes has answered, for metrics. It is not passed on. */
const ROUTE_HEADER = "tessera-route";
const ROUTE_TEMPLATE = /^\/[\x21-\x7e]{0,199}$/;

/** Body of an answer that is sent with its head as one text, which is one write. */
const MAX_JOINED_BYTES = 16 * 1024;

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
 * BODY_TOO_LARGE, CALL_TIMEOUT, CALL_FAILED, WORKER_LOST, KEY_LIMITED, and what `Deployment.admit` and
 * `Calls.hold` refuse with.
 */
export async function answerMounted(
  req: FastifyRequest,
  reply: FastifyReply,
  values: ContextValues,
  { deployment, mount, ...options }: Mounted & MountedOptions,
): Promise<void> {
  let route: string | undefined;
  const onHead = (head: AnswerHead): void => {
    route = saidRoute(head, mount);
  };
  const begin = async (): Promise<number> => {
    const tokenId = tokenIdOf(values);
    deployment.admit("api", tokenId);
    if (Number(req.headers["content-length"] ?? 0) > options.maxBodyBytes) {
      throw tooLarge(options);
    }
    const endpoint = mountEndpoint(mount);
    const place = deployment.calls.enter(endpoint, keyOfRequest(req, values, endpoint));
    try {
      for (let isLast = false; ; isLast = true) {
        const held = await deployment.calls.hold(endpoint, {
          signal: disconnectSignal(reply),
          worker: namedWorker(req.headers[WORKER_HEADER]),
          tokenId,
        });
        const slot = place ? withPlace(held, place) : held;
        const status = await begun({ req, reply, values, mount, slot, onHead, ...options }, isLast);
        if (status !== AGAIN) {
          return status;
        }
      }
    } catch (err) {
      place?.[Symbol.dispose]();
      throw err;
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

/** Whose a request is among those that share the server; undefined where it has no limits by key. */
function keyOfRequest(
  { headers }: FastifyRequest,
  values: ContextValues,
  endpoint: EndpointManifest,
): string | undefined {
  const get = (name: string): string | null => headers[name]?.toString() ?? null;
  return keyOfCall({ values, requestHeader: { get } }, endpoint);
}

/** A slot with the place of its key, which goes back with it unless another try follows. */
function withPlace(slot: HeldSlot, place: Disposable): HeldSlot {
  return {
    ...slot,
    release: (passed) => {
      slot.release(passed);
      if (passed) {
        place[Symbol.dispose]();
      }
    },
  };
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
  onHead(head: AnswerHead): void;
}

/** One request to a server, and its answer. */
class Exchange implements AnswerListener {
  readonly #options: ExchangeOptions;
  readonly #method: string;
  readonly #text: string;
  /** Of the body, where its caller has said it. */
  readonly #length: number | undefined;
  readonly #hasBody: boolean;
  /** That of a WebSocket over HTTP/2, which this node makes: over HTTP/1.1 it is the caller's. */
  readonly #key: string | undefined;
  readonly #begun = Promise.withResolvers<number>();
  #connection: MountConnection | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopStanding = (): void => {};
  /** The head of the answer has gone to the caller. */
  #isAnswered = false;
  /** The caller takes no more for now. */
  #isHeld = false;
  /** The server has said all. */
  #isWhole = false;
  /** The slot is given back. */
  #isOver = false;
  #isLast = false;
  #bodyTimer: NodeJS.Timeout | undefined;
  #sentBytes = 0;
  #answeredBytes = 0;
  /** Another try follows, so that this one is no call. */
  #isAgain = false;

  constructor(options: ExchangeOptions) {
    const { req, values } = options;
    this.#options = options;
    const isConnect = req.method === "CONNECT";
    this.#key = isConnect ? randomBytes(16).toString("base64") : undefined;
    this.#method = isConnect ? "GET" : req.method;
    this.#hasBody = hasBody(req);
    const line = { method: this.#method, path: urlOf(req), key: this.#key };
    const { text, length } = requestHead(req, values, line);
    this.#text = text;
    this.#length = length;
  }

  /** The status of the answer, when it begins; `AGAIN` where it is worth another try. */
  begin(isLast: boolean): Promise<number> {
    const { req, reply, mount, slot } = this.#options;
    const { timeoutMs, path } = mount;
    this.#isLast = isLast;
    this.#timer = setTimeout(() => {
      const message = `the server at ${path} did not begin its answer within ${timeoutMs} ms`;
      this.#giveUp(problem("CALL_TIMEOUT", message));
    }, timeoutMs);
    reply.raw.once("close", () => {
      // Over HTTP/2 a stream that was reset looks as if all had been written.
      if (!this.#isWhole) {
        this.#giveUp(this.#lost(undefined));
      }
    });
    const connection = slot.agent.connection({ isNew: hasUpgrade(req.raw) });
    if (connection instanceof Promise) {
      connection
        .then((given) => this.#send(given))
        .catch(() => this.#giveUp(this.#lost(undefined)));
    } else {
      this.#send(connection);
    }
    return this.#begun.promise;
  }

  #send(connection: MountConnection): void {
    const { req, slot } = this.#options;
    if (this.#isOver) {
      slot.agent.giveBack(connection);
      return;
    }
    this.#connection = connection;
    const isLast = hasUpgrade(req.raw);
    const head = { method: this.#method, text: this.#text };
    if (!this.#hasBody) {
      connection.send({ ...head, hasBody: false }, this, isLast);
      return;
    }
    const { raw } = req;
    const all: Buffer | null = raw.readableLength === this.#length ? raw.read() : null;
    if (all !== null) {
      // The body has come with the head, and goes with it.
      raw.resume();
      this.#sentBytes = all.length;
      const text = `${head.text}${all.toString("latin1")}`;
      connection.send({ method: head.method, text, hasBody: false }, this, isLast);
      return;
    }
    connection.send({ ...head, hasBody: true }, this, isLast);
    this.#sendBody(connection);
  }

  #sendBody(connection: MountConnection): void {
    const { raw } = this.#options.req;
    const length = this.#length;
    raw.on("data", (chunk: Buffer) => {
      this.#sentBytes += chunk.length;
      if (this.#isOver) {
        return;
      }
      if (this.#sentBytes > this.#options.maxBodyBytes) {
        this.#giveUp(tooLarge(this.#options));
      } else if (length !== undefined && this.#sentBytes > length) {
        // What is too much would be read as the next request.
        this.#leave();
      } else if (!connection.write(length === undefined ? chunkOf(chunk) : chunk)) {
        raw.pause();
      }
    });
    raw.on("end", () => {
      // Over HTTP/2 a stream that was reset ends, too.
      if (raw.aborted || (length !== undefined && this.#sentBytes !== length)) {
        this.#leave();
      } else if (!this.#isOver) {
        connection.end(length === undefined ? LAST_CHUNK : undefined);
      }
    });
    raw.on("aborted", () => this.#leave());
    raw.on("error", () => this.#leave());
    if (raw.httpVersionMajor === 2) {
      // Over HTTP/1.1 Node sees to that.
      this.#bodyTimer = setTimeout(() => !raw.complete && cut(raw), BODY_DEADLINE_MS);
    }
  }

  onDrain(): void {
    this.#options.req.raw.resume();
  }

  onHead(head: AnswerHead, whole: Buffer | undefined): void {
    const { req, reply, mount, slot } = this.#options;
    clearTimeout(this.#timer);
    this.#options.onHead(head);
    const { status } = head;
    const { raw } = reply;
    if (raw.headersSent || raw.destroyed) {
      this.#giveUp(this.#lost(undefined));
      return;
    }
    if (status > 599) {
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
    try {
      const fields = responseHeaders(head, { reply, worker: slot.ranIn.worker });
      if (raw.req.httpVersionMajor === 2) {
        raw.writeHead(status, Object.fromEntries(byName(fields, { joins: true })));
      } else {
        raw.writeHead(status, fields);
      }
    } catch (cause) {
      const message = `the headers of the server at ${mount.path} cannot be passed on`;
      this.#giveUp(problem("CALL_FAILED", message, { cause }));
      cut(req.raw);
      return;
    }
    this.#isAnswered = true;
    if (whole === undefined) {
      this.#keepStanding();
    } else {
      this.#isWhole = true;
      this.#answeredBytes = whole.length;
      sendWhole(raw, whole);
    }
    this.#begun.resolve(status);
  }

  onData(chunk: Buffer): void {
    const { raw } = this.#options.reply;
    this.#answeredBytes += chunk.length;
    if (!raw.write(chunk)) {
      this.#connection?.pause();
      if (!this.#isHeld) {
        this.#isHeld = true;
        raw.once("drain", this.#goOn);
      }
    }
  }

  /** The caller takes more. */
  readonly #goOn = (): void => {
    this.#isHeld = false;
    this.#connection?.resume();
  };

  onEnd(): void {
    if (!this.#isWhole) {
      this.#isWhole = true;
      this.#options.reply.raw.end();
    }
    this.#finish();
  }

  onFault({ malformed }: ConnectionFault): void {
    const { req } = this.#options;
    if (this.#isAnswered) {
      // Its end would look like that of the whole.
      cut(req.raw);
      this.#finish();
      return;
    }
    const isStale = this.#connection?.isReused === true && malformed === undefined;
    if (isStale && !this.#isLast && SAFE.has(this.#method) && !this.#hasBody) {
      this.#isAgain = true;
      this.#begun.resolve(AGAIN);
    } else {
      this.#begun.reject(this.#lost(malformed));
    }
    this.#finish();
  }

  /** Passes the bytes of a WebSocket in both directions until one side has ended. */
  onUpgrade(head: AnswerHead, socket: Duplex, first: Buffer): void {
    const { req, reply, slot, mount } = this.#options;
    clearTimeout(this.#timer);
    this.#options.onHead(head);
    const refuse = (message: string): void => {
      socket.destroy();
      this.#giveUp(problem("CALL_FAILED", `the server at ${mount.path} ${message}`));
    };
    if (this.#key !== undefined && headerOf(head, ACCEPT) !== acceptOf(this.#key)) {
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
      const to = { reply, worker: slot.ranIn.worker, isUpgrade: true };
      caller = open(byName(responseHeaders(head, to), { joins: this.#key !== undefined }));
    } catch {
      refuse("opened a WebSocket with headers that cannot be passed on");
      cut(req.raw);
      return;
    }
    caller.write(first);
    this.#isAnswered = true;
    // Its end is that of both sides, and not of an answer.
    this.#isWhole = true;
    this.#isOver = true;
    this.#keepStanding();
    socket.on("data", (chunk: Buffer) => {
      this.#answeredBytes += chunk.length;
    });
    caller.on("data", (chunk: Buffer) => {
      this.#sentBytes += chunk.length;
    });
    join(socket, caller, () => {
      this.#stopStanding();
      slot.release(this.#passed);
    });
    this.#begun.resolve(101);
  }

  #keepStanding(): void {
    const { req, values, keepStanding } = this.#options;
    this.#stopStanding = keepStanding(req, values, () => {
      this.#connection?.destroy();
      cut(req.raw);
      this.#finish();
    });
  }

  /** The caller has left before all of the request was there. */
  #leave(): void {
    this.#giveUp(this.#lost(undefined));
  }

  #giveUp(fault: Error): void {
    if (this.#isOver) {
      // The connection may have the request of somebody else.
      return;
    }
    this.#begun.reject(fault);
    this.#connection?.destroy();
    this.#finish();
  }

  get #passed() {
    return { bytesIn: this.#sentBytes, bytesOut: this.#answeredBytes };
  }

  /** Gives the slot back. */
  #finish(): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    const { req, reply, slot } = this.#options;
    clearTimeout(this.#timer);
    clearTimeout(this.#bodyTimer);
    reply.raw.off("drain", this.#goOn);
    this.#stopStanding();
    slot.release(this.#isAgain ? undefined : this.#passed);
    if (!hasUpgrade(req.raw)) {
      discard(req.raw);
    }
  }

  #lost(malformed: string | undefined): Problem {
    const { path } = this.#options.mount;
    return malformed !== undefined
      ? problem("CALL_FAILED", `the server at ${path} answered what is not HTTP: ${malformed}`)
      : problem("WORKER_LOST", `the server at ${path} ended the connection before it answered`, {
          code: Code.Unavailable,
          retryAfterMs: 1_000,
        });
  }
}

const LAST_CHUNK = "0\r\n\r\n";

/** A chunk of a body whose length nobody knows (RFC 9112, section 7.1). */
function chunkOf(data: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, LINE_END]);
}

const LINE_END = Buffer.from("\r\n");

/** Ends an answer whose head is written. */
function sendWhole(raw: FastifyReply["raw"], body: Buffer): void {
  if (body.length === 0) {
    raw.end();
  } else if (body.length <= MAX_JOINED_BYTES && raw.req.httpVersionMajor === 1) {
    raw.end(body.toString("latin1"), "latin1");
  } else {
    raw.end(body);
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

const ACCEPT = "sec-websocket-accept";

/** The value of a header of an answer, by its name in lower case; undefined without one, and of several. */
function headerOf({ rawHeaders }: AnswerHead, name: string): string | undefined {
  let found: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const given = rawHeaders[index] ?? "";
    if (given.length === name.length && given.toLowerCase() === name) {
      if (found !== undefined) {
        return undefined;
      }
      found = rawHeaders[index + 1];
    }
  }
  return found;
}

/** The template of the route that a server says has answered; undefined where it says none of its own. */
function saidRoute(head: AnswerHead, { path }: MountManifest): string | undefined {
  const said = headerOf(head, ROUTE_HEADER);
  return said !== undefined && ROUTE_TEMPLATE.test(said) && isBelow(said, path) ? said : undefined;
}
