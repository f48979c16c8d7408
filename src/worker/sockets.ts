/**
 * Runs functions that speak through WebSockets, each as a server of `node:http` with `ws`. Nothing
 * is compressed, and a caller is read no faster than the function reads, so that what waits in the
 * worker is bounded: two messages, or those that were read from the connection at once.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { inspect } from "node:util";
import { type WebSocket, WebSocketServer } from "ws";
import type { CallRequest } from "../sdk/context.ts";
import type { ServedSocket, Socket, SocketFunction, SocketMessage } from "../sdk/sockets.ts";
import { headersOf, MAX_HEADER_BYTES, urlOf } from "./requests.ts";

/** When a caller is pinged, and how long it has to answer. */
const PING_INTERVAL_MS = 30_000;
/** How long a caller has to answer a close frame. */
const CLOSE_TIMEOUT_MS = 5_000;
/** Messages of a caller that wait, from which on it is not read. */
const MAX_WAITING_MESSAGES = 2;
/** What a close frame has place for (RFC 6455, section 5.5). */
const MAX_REASON_BYTES = 123;

const CLOSES_WITH = { end: 1000, failure: 1011 } as const;

interface SocketServerOptions {
  readonly pingIntervalMs?: number;
}

/** The server of a function with a WebSocket, which is at this path alone. */
export function socketServer(
  { run, maxMessageBytes }: ServedSocket,
  path: string,
  { pingIntervalMs = PING_INTERVAL_MS }: SocketServerOptions = {},
): Server {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: maxMessageBytes,
    closeTimeout: CLOSE_TIMEOUT_MS,
  });
  const elsewhere = `Nothing is here: the WebSocket is at ${path}.\n`;
  const server = createServer(
    { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: 0 },
    (req, res) => {
      if (isAt(req, path)) {
        const said = `${path} is a WebSocket: open it as one, at wss://.\n`;
        res.writeHead(426, { "content-type": TEXT, upgrade: "websocket" }).end(said);
      } else {
        res.writeHead(404, { "content-type": TEXT }).end(elsewhere);
      }
    },
  );
  server.on("upgrade", (req, connection: Duplex, head) => {
    if (!isAt(req, path)) {
      refuse(connection, elsewhere);
      return;
    }
    sockets.handleUpgrade(req, connection, head, (opened) => {
      if (run !== undefined) {
        void speak(run, req, new CallerSocket(opened, pingIntervalMs));
      }
    });
  });
  return server;
}

const TEXT = "text/plain; charset=utf-8";

function isAt(req: IncomingMessage, path: string): boolean {
  try {
    return decodeURIComponent(new URL(urlOf(req)).pathname) === path;
  } catch {
    return false;
  }
}

/** Answers 404 to who asks for a WebSocket; then the connection ends. */
function refuse(connection: Duplex, said: string): void {
  connection.on("error", () => {});
  const about = [`content-type: ${TEXT}`, `content-length: ${Buffer.byteLength(said)}`];
  const head = ["HTTP/1.1 404 Not Found", "connection: close", ...about];
  connection.end(`${head.join("\r\n")}\r\n\r\n${said}`);
}

async function speak(
  run: SocketFunction,
  req: IncomingMessage,
  socket: CallerSocket,
): Promise<void> {
  let code: number = CLOSES_WITH.end;
  try {
    await run({ socket, request: requestOf(req), signal: socket.signal });
  } catch (err) {
    if (!(socket.closed && saysClosed(err))) {
      process.stderr.write(`${inspect(err)}\n`);
    }
    code = CLOSES_WITH.failure;
  }
  socket.close(code);
}

function requestOf(req: IncomingMessage): CallRequest {
  const headers = headersOf(req);
  const client = headers.get("x-forwarded-for")?.split(",", 1)[0]?.trim();
  return { method: "GET", url: new URL(urlOf(req)), headers, client: client || undefined };
}

/** How `send` says that the caller has left, or that the WebSocket was closed. */
class SocketClosedError extends Error {
  override readonly name = "SocketClosedError";

  constructor() {
    super("the WebSocket is closed");
  }
}

/** Whether an error only says that the WebSocket has ended: of `send`, or of what took the signal. */
function saysClosed(err: unknown): boolean {
  return (
    err instanceof SocketClosedError ||
    (err instanceof Error && err.cause instanceof SocketClosedError)
  );
}

type Read = IteratorResult<SocketMessage, undefined>;

class CallerSocket implements Socket {
  readonly #opened: WebSocket;
  readonly #gone = new AbortController();
  readonly #pings: NodeJS.Timeout;
  /** Messages that nobody has asked for. */
  readonly #waiting: SocketMessage[] = [];
  /** Those who have asked for a message. */
  readonly #readers: ((read: Read) => void)[] = [];
  #isAnswered = true;

  constructor(opened: WebSocket, pingIntervalMs: number) {
    this.#opened = opened;
    opened.on("message", (data: Buffer, isBinary: boolean) =>
      this.#take(isBinary ? data : data.toString()),
    );
    // One of the protocol, which the caller learns from the code of its close frame.
    opened.on("error", () => this.#end());
    opened.once("close", () => {
      clearInterval(this.#pings);
      this.#end();
    });
    opened.on("pong", () => {
      this.#isAnswered = true;
    });
    this.#pings = setInterval(() => this.#ping(), pingIntervalMs).unref();
  }

  get closed(): boolean {
    return this.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Read> {
    const message = this.#waiting.shift();
    if (message !== undefined) {
      if (this.#waiting.length < MAX_WAITING_MESSAGES) {
        this.#opened.resume();
      }
      return Promise.resolve({ value: message });
    }
    return this.closed
      ? Promise.resolve({ value: undefined, done: true })
      : new Promise((resolve) => this.#readers.push(resolve));
  }

  send(message: string | ArrayBuffer | Uint8Array): Promise<void> {
    if (typeof message !== "string" && !isBytes(message)) {
      throw new TypeError(`a message is a string, an ArrayBuffer or a Uint8Array, not ${message}`);
    }
    const sent = new Promise<void>((resolve, reject) => {
      if (this.closed) {
        reject(new SocketClosedError());
        return;
      }
      this.#opened.send(message, (err) => {
        if (err) {
          this.#end();
          reject(new SocketClosedError());
        } else {
          resolve();
        }
      });
    });
    // Who does not wait for it need not hear that the caller has left.
    sent.catch(() => {});
    return sent;
  }

  close(code: number = CLOSES_WITH.end, reason = ""): void {
    if (!isCloseCode(code)) {
      throw new RangeError(
        `${code} closes no WebSocket: take 1000, 1001, 1003, 1007 to 1014, or 3000 to 4999, which are for applications`,
      );
    }
    if (typeof reason !== "string" || Buffer.byteLength(reason) > MAX_REASON_BYTES) {
      throw new RangeError(`the reason must be a text of at most ${MAX_REASON_BYTES} bytes`);
    }
    if (!this.closed) {
      this.#waiting.length = 0;
      this.#opened.close(code, reason);
      this.#end();
    }
  }

  #take(message: SocketMessage): void {
    if (this.closed) {
      return;
    }
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ value: message });
    } else if (this.#waiting.push(message) >= MAX_WAITING_MESSAGES) {
      this.#opened.pause();
    }
  }

  /** Nothing more is read or sent, but for what has been read already. */
  #end(): void {
    if (this.closed) {
      return;
    }
    this.#gone.abort(new SocketClosedError());
    for (const reader of this.#readers.splice(0)) {
      reader({ value: undefined, done: true });
    }
    // What answers the close frame is behind what was not read.
    this.#opened.resume();
  }

  #ping(): void {
    if (this.#opened.isPaused) {
      // Behind what the function has not read yet, the answer to a ping cannot be seen.
      this.#isAnswered = true;
    } else if (this.#isAnswered) {
      this.#isAnswered = false;
      this.#opened.ping();
    } else {
      this.#opened.terminate();
    }
  }
}

function isBytes(message: unknown): message is ArrayBuffer | Uint8Array {
  return message instanceof ArrayBuffer || message instanceof Uint8Array;
}

function isCloseCode(code: number): boolean {
  return (
    Number.isInteger(code) &&
    ([1000, 1001, 1003].includes(code) ||
      (code >= 1007 && code <= 1014) ||
      (code >= 3000 && code <= 4999))
  );
}
