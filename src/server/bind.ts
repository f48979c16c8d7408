/**
 * The server's port, held from before the first worker starts until the last
 * one has ended: a worker on this machine could otherwise listen there and
 * collect the credentials of callers.
 *
 * `localhost` stands for both loopback addresses, and clients try either first.
 * A server that listens on one of them leaves the other to anybody, so for this
 * name the port is bound on both.
 */
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";

interface Address {
  readonly port: number;
  readonly host: string;
}

interface ListenOptions extends Address {
  /**
   * Whether other processes of this user may listen on the port, too; the kernel then deals
   * connections out between them (SO_REUSEPORT). Default false.
   */
  readonly shared?: boolean;
}

/** What `localhost` resolves to (RFC 6761, section 6.3). */
const LOOPBACKS = ["127.0.0.1", "::1"];

/** Attempts to find a free port that is free on both loopback addresses. */
const MAX_FREE_PORT_ATTEMPTS = 10;

/** Connections that wait for the server to serve; what comes beyond is closed. */
const MAX_WAITING_CONNECTIONS = 1_000;

/** A port that this process listens on. */
export interface BoundPort extends AsyncDisposable {
  readonly port: number;
  /**
   * Gives connections to this server from now on. Those that came before have waited unread, up to
   * `MAX_WAITING_CONNECTIONS`: a service may take minutes to load, and many clients take a
   * connection that is closed at once for a broken server.
   */
  handTo(server: Server): void;
}

/** Binds the port; 0 takes a free one. Rejects with a message that says what to do. */
export async function bindPort(options: ListenOptions): Promise<BoundPort> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await bindAll(options);
    } catch (err) {
      if (options.port !== 0 || codeOf(err) !== "EADDRINUSE" || tries === MAX_FREE_PORT_ATTEMPTS) {
        throw refusal(err, options);
      }
    }
  }
}

/**
 * The URL at which this machine reaches a server on this host and port. It
 * names only addresses that the server holds.
 */
export function localUrl({ port, host }: Address): string {
  return `http://${authority({ port, host: REACHED_AT[host] ?? host })}`;
}

/** Hosts that stand for every address of the machine, and where it reaches itself then. */
const REACHED_AT: { readonly [host: string]: string } = {
  "0.0.0.0": "127.0.0.1",
  // It takes IPv4 too.
  "::": "localhost",
};

/** Whether a server on this host holds every address of `localhost`. */
export function holdsLocalhost(host: string): boolean {
  return (REACHED_AT[host] ?? host) === "localhost";
}

/** A host and a port as a URL has them: addresses of IPv6 stand in brackets. */
export function authority({ port, host }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Binds every address that the host stands for; leaves nothing bound if one fails. */
async function bindAll({ host, shared, ...wanted }: ListenOptions): Promise<BoundPort> {
  const servers: Server[] = [];
  let { port } = wanted;
  let missing: unknown;
  for (const address of host === "localhost" ? LOOPBACKS : [host]) {
    try {
      const server = await listen({ port, host: address, shared });
      servers.push(server);
      ({ port } = server.address() as AddressInfo);
    } catch (err) {
      if (!isMissing(err) || host !== "localhost") {
        await closeAll(servers);
        throw err;
      }
      missing = err;
    }
  }
  if (servers.length === 0) {
    throw missing;
  }
  return boundPort(port, servers);
}

async function listen({ port, host, shared = false }: ListenOptions): Promise<Server> {
  const server = createServer({ noDelay: true }).listen({ port, host, reusePort: shared });
  await once(server, "listening");
  return server;
}

function boundPort(port: number, servers: readonly Server[]): BoundPort {
  let taker: Server | undefined;
  const waiting = new Set<Socket>();
  for (const server of servers) {
    server.on("connection", (socket) => {
      if (taker) {
        taker.emit("connection", socket);
      } else if (waiting.size < MAX_WAITING_CONNECTIONS) {
        waiting.add(socket);
        socket.once("error", ignore).once("close", () => waiting.delete(socket));
      } else {
        socket.destroy();
      }
    });
  }
  return {
    port,
    handTo(server) {
      taker = server;
      for (const socket of waiting) {
        socket.off("error", ignore);
        server.emit("connection", socket);
      }
      waiting.clear();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of waiting) {
        socket.destroy();
      }
      await closeAll(servers);
    },
  };
}

/** A connection that broke while it waited is gone. */
function ignore(): void {}

async function closeAll(servers: readonly Server[]): Promise<void> {
  const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
  await Promise.all(closed);
}

function codeOf(err: unknown): string | undefined {
  return (err as NodeJS.ErrnoException).code;
}

/** Whether the machine does not have the address, such as one of IPv6 where that is switched off. */
function isMissing(err: unknown): boolean {
  return ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(codeOf(err) ?? "");
}

function refusal(err: unknown, { port, host, shared }: ListenOptions): Error {
  const flag = shared ? "--shared-port" : "--port";
  const reasons: Record<string, string> = {
    EADDRINUSE: `another program is using it; choose another with ${flag}`,
    EACCES: `this user may not use it; choose one from 1024 with ${flag}`,
    ENOTSUP: "this system has no ports that processes share; leave --shared-port out",
    EADDRNOTAVAIL: "this machine does not have that address; check --host",
    EAFNOSUPPORT: "this machine does not have that address; check --host",
    ENOTFOUND: "the host is not known; check --host",
  };
  const { address = host } = err as { readonly address?: string };
  const both = host === "localhost" ? ` (localhost means ${LOOPBACKS.join(" and ")})` : "";
  const reason = reasons[codeOf(err) ?? ""] ?? (err instanceof Error ? err.message : String(err));
  return new Error(`cannot listen on ${authority({ port, host: address })}: ${reason}${both}`, {
    cause: err,
  });
}
