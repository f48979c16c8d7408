/**
 * The egress proxy: a server on a Unix socket through which the workers of one
 * deployment reach the network. The first byte of a connection tells SOCKS5
 * from HTTP. Every connection outward is judged by the policy; what is refused
 * is told to the client, counted, and logged where the author looks.
 *
 * The bytes are a service's and may be anything: handshakes have a deadline,
 * headers and connections a limit, and silence an end.
 */
import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { LogRateLimit } from "../log-rate-limit.ts";
import { dial, type Resolve } from "./dial.ts";
import { httpSide } from "./http.ts";
import type { EgressPolicy } from "./policy.ts";
import { type Asked, EgressFailedError, EgressRefusedError } from "./refusals.ts";
import { SOCKS_VERSION, serveSocks } from "./socks.ts";
import { tunnel } from "./tunnel.ts";
import { dialThrough, type FindUpstream } from "./upstream.ts";

/** Bytes of a Unix socket's path on Linux, without the NUL at its end. */
const MAX_SOCKET_PATH_BYTES = 107;
/** Connections of one egress proxy at a time; further ones are closed at once. */
const MAX_EGRESS_CONNECTIONS = 256;
/** How long a client may take to say where it wants to go. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Silence in both directions after which a connection is closed. */
const EGRESS_IDLE_TIMEOUT_MS = 600_000;
/** Refusals that reach the log of a deployment, in the long run. */
const REFUSAL_LINES_PER_SECOND = 1;

export interface EgressProxyOptions {
  /** Where to listen, in a folder that only the node's user may enter. */
  readonly path: string;
  readonly policy: EgressPolicy;
  /** A connection was opened or refused; one that the network failed is neither. */
  onDecision(decision: "allowed" | "refused"): void;
  /** A line for the deployment's log. */
  onLine(line: string): void;
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve | undefined;
  /** The operator's own proxies. Default: every host is connected to directly. */
  readonly upstream?: FindUpstream | undefined;
  /** Default: 10 s. */
  readonly handshakeMs?: number;
  /** Default: 10 min. */
  readonly idleMs?: number;
}

export class EgressProxy implements AsyncDisposable {
  /** The path of the socket. */
  readonly path: string;
  readonly #options: EgressProxyOptions;
  readonly #server: Server;
  readonly #http: HttpServer;
  readonly #sockets = new Set<Socket>();
  readonly #logRateLimit: LogRateLimit;
  readonly #handshakeMs: number;
  readonly #idleMs: number;
  #closed: Promise<void> | undefined;

  constructor(options: EgressProxyOptions) {
    const { path, handshakeMs = HANDSHAKE_TIMEOUT_MS, idleMs = EGRESS_IDLE_TIMEOUT_MS } = options;
    this.path = path;
    this.#options = options;
    this.#handshakeMs = handshakeMs;
    this.#idleMs = idleMs;
    this.#logRateLimit = new LogRateLimit(REFUSAL_LINES_PER_SECOND, options.onLine);
    const open = (asked: Asked): Promise<Socket> => this.#open(asked);
    this.#http = httpSide({ open, handshakeMs, idleMs });
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      this.#accept(socket),
    );
    this.#server.maxConnections = MAX_EGRESS_CONNECTIONS;
  }

  /** Listens. Rejects if the path is too long for a socket, or cannot be used. */
  async start(): Promise<void> {
    const bytes = Buffer.byteLength(this.path);
    if (bytes > MAX_SOCKET_PATH_BYTES) {
      throw new Error(
        `${this.path} has ${bytes} bytes, and the path of a socket at most ${MAX_SOCKET_PATH_BYTES}: set TMPDIR of the node to a shorter folder`,
      );
    }
    this.#server.listen(this.path);
    await once(this.#server, "listening");
    // Starts the checks of headers that take too long.
    this.#http.emit("listening");
  }

  /** Whether the operator lets it connect to this name or address, at some port. */
  leadsOut(host: string): boolean {
    return this.#options.policy.isAllowed(host);
  }

  /** Closes every connection and removes the socket. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      // It never listens itself, which is the only error there can be.
      this.#http.close(() => {});
      for (const socket of this.#sockets) {
        socket.destroy();
      }
      this.#logRateLimit[Symbol.dispose]();
    });
    return this.#closed;
  }

  #accept(socket: Socket): void {
    this.#hold(socket);
    const late = setTimeout(() => socket.destroy(), this.#handshakeMs);
    socket.once("close", () => clearTimeout(late));
    socket.once("end", () => {
      if (socket.bytesRead === 0) {
        socket.destroy();
      }
    });
    socket.once("data", (chunk) => {
      socket.pause();
      socket.unshift(chunk);
      if (chunk[0] === SOCKS_VERSION) {
        void this.#socks(socket, () => clearTimeout(late));
      } else {
        // From here on, the HTTP server's own deadline holds.
        clearTimeout(late);
        this.#http.emit("connection", socket);
        socket.resume();
      }
    });
  }

  async #socks(socket: Socket, onAsked: () => void): Promise<void> {
    const upstream = await serveSocks(socket, (asked) => {
      onAsked();
      return this.#open(asked);
    });
    if (upstream !== undefined) {
      tunnel(socket, upstream, this.#idleMs);
    }
  }

  async #open(asked: Asked): Promise<Socket> {
    const { policy, resolve, onDecision, upstream: find } = this.#options;
    try {
      const via = find?.(asked);
      const upstream = await (via === undefined
        ? dial(asked, { policy, resolve })
        : dialThrough(via, asked, { policy, resolve }));
      this.#hold(upstream);
      onDecision("allowed");
      if (this.#closed !== undefined) {
        upstream.destroy();
        throw new EgressFailedError("the worker is ending");
      }
      return upstream;
    } catch (err) {
      if (err instanceof EgressRefusedError) {
        onDecision("refused");
        const line = `a connection was refused: ${err.message}`;
        if (this.#closed === undefined && this.#logRateLimit.admit(line.length)) {
          this.#options.onLine(line);
        }
      }
      throw err;
    }
  }

  /** Remembers a socket while it is open; an error only ends it. */
  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  }
}
