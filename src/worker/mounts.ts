/**
 * Runs the mounted servers of a service, without a port: where the node wants a connection, it says
 * so, and the worker connects to a Unix socket of the node. From then on that connection is one
 * that the server has accepted.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { constants } from "node:os";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { setTimeout } from "node:timers/promises";
import { inspect } from "node:util";
import { type FetchHandler, isServer, type Mountable, type ServiceMount } from "../sdk/mounts.ts";
import { RunningProgram } from "./program.ts";
import { headersOf, MAX_HEADER_BYTES, urlOf } from "./requests.ts";
import type { ConnectMount } from "./restrict.ts";
import { socketServer } from "./sockets.ts";

/** Longer than the node keeps a connection between requests, so that the node closes it first. */
const IDLE_CONNECTION_TIMEOUT_MS = 120_000;
/** As long as the node waits for a connection. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Between two tries to connect. */
const CONNECT_RETRY_MS = 10;
/** A close frame (RFC 6455, section 5.5.1) with the code 1012: the service restarts. */
const RESTART_FRAME = Buffer.from([0x88, 0x02, 0x03, 0xf4]);

interface MountsOptions {
  /** The folder of the service. */
  readonly folder: string;
  /** The variables of the worker. */
  readonly env: NodeJS.ProcessEnv;
  /** Connects to the node for the server at an index. */
  readonly connect: ConnectMount;
  /** A program has ended, which ends the worker for this reason. */
  onEnded(reason: string): void;
}

export class Mounts {
  readonly #servers: readonly (Server | RunningProgram)[];
  readonly #connect: ConnectMount;
  /** Connections that a server has taken over, such as those of WebSockets. */
  readonly #upgraded = new Set<Socket>();

  constructor(mounts: readonly ServiceMount[], { connect, ...options }: MountsOptions) {
    this.#connect = connect;
    this.#servers = mounts.map(({ serves, manifest: { path } }) =>
      "program" in serves
        ? new RunningProgram(serves.program, { path, ...options })
        : this.#serve("app" in serves ? serves.app : socketServer(serves.socket, path)),
    );
  }

  get #programs(): readonly RunningProgram[] {
    return this.#servers.filter((server) => server instanceof RunningProgram);
  }

  /** Starts programs, and resolves when all are ready; `say` is called with what is not yet. */
  async start(say: (said: string) => void): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.start(say)));
  }

  /** What keeps programs from taking requests; undefined where none says it. */
  get health(): (() => Promise<string>) | undefined {
    const programs = this.#programs.filter(({ hasHealth }) => hasHealth);
    return programs.length === 0
      ? undefined
      : async () =>
          (await Promise.all(programs.map((program) => program.fault()))).find(Boolean) ?? "";
  }

  /** Connects to the node once more for the server at this index. */
  connect(index: number): void {
    this.#connected(index).then(
      (socket) => {
        const server = this.#servers[index];
        if (server instanceof RunningProgram) {
          server.relay(socket);
        } else {
          server?.emit("connection", socket);
        }
      },
      // The node has ended, or gave up waiting.
      () => {},
    );
  }

  /** Tries again where as many connections wait for the node as the kernel lets. */
  async #connected(index: number): Promise<Socket> {
    const untilMs = performance.now() + CONNECT_TIMEOUT_MS;
    for (;;) {
      try {
        return await this.#connect(index);
      } catch (err) {
        const isFull = (err as NodeJS.ErrnoException).errno === -constants.errno.EAGAIN;
        if (!isFull || performance.now() >= untilMs) {
          throw err;
        }
      }
      await setTimeout(CONNECT_RETRY_MS);
    }
  }

  /** Ends WebSockets with the code 1012. Other connections end with the node's last request. */
  retire(): void {
    for (const socket of this.#upgraded) {
      if (!socket.writableEnded) {
        socket.end(RESTART_FRAME);
      }
    }
    for (const program of this.#programs) {
      program.retire(RESTART_FRAME);
    }
  }

  /** Ends programs. Resolves when they have ended. */
  async stop(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
  }

  #serve(app: Mountable): Server {
    const server = typeof app === "object" && isServer(app) ? app : fetchServer(app);
    server.keepAliveTimeout = IDLE_CONNECTION_TIMEOUT_MS;
    server.requestTimeout = 0;
    if (server.listenerCount("upgrade") > 0) {
      server.on("upgrade", (_req, socket: Socket) => {
        this.#upgraded.add(socket);
        socket.once("close", () => this.#upgraded.delete(socket));
      });
    }
    return server;
  }
}

function fetchServer(app: FetchHandler | { readonly fetch: FetchHandler }): Server {
  const handle = typeof app === "function" ? app : (request: Request) => app.fetch(request);
  return createServer({ maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: 0 }, (req, res) => {
    answer(handle, req, res).catch((err: unknown) => {
      process.stderr.write(`${inspect(err)}\n`);
      if (res.headersSent) {
        // Its end would look like that of the whole.
        res.destroy();
      } else {
        res.writeHead(500, { "content-type": "text/plain" }).end("Internal Server Error");
      }
    });
  });
}

/** Answers by a handler of the Fetch API. */
async function answer(
  handle: FetchHandler,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  res.once("close", () => {
    if (!res.writableFinished) {
      gone.abort();
    }
  });
  if (req.method === "TRACE" || req.method === "CONNECT") {
    // The Fetch API has no such requests.
    res.writeHead(405).end();
    return;
  }
  const response = await handle(requestOf(req, gone.signal));
  const headers: [string, string][] = [...response.headers];
  res.statusCode = response.status;
  for (const [name, value] of headers) {
    res.appendHeader(name, value);
  }
  if (response.body === null || req.method === "HEAD") {
    res.end();
    return;
  }
  for await (const piece of response.body as ReadableStream<Uint8Array>) {
    if (!res.write(piece) && !res.destroyed) {
      await new Promise<void>((resolve) => {
        res.once("drain", resolve);
        res.once("close", resolve);
      });
    }
    if (res.destroyed) {
      return;
    }
  }
  res.end();
}

function requestOf(req: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET" } = req;
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(urlOf(req), {
    method,
    headers: headersOf(req),
    signal,
    ...(hasBody && { body: Readable.toWeb(req) as ReadableStream<Uint8Array>, duplex: "half" }),
  } as RequestInit);
}
