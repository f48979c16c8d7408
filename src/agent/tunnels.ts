/**
 * Connections between the platform and the mounted servers of the process on this machine. The node
 * asks for each on the Work stream. Its bytes pass through a stream of its own, no faster than
 * either side reads, beside the Work stream on the same connection: another one might reach another
 * node.
 */
import { once } from "node:events";
import type { Agent, ClientRequestArgs } from "node:http";
import type { Duplex } from "node:stream";
import type { Connect } from "../../gen/tessera/v1/worker_pb.js";
import { framesOf } from "../pool/remote/tunnel.ts";
import { Turns } from "../pool/remote/turns.ts";
import { mountEndpoint } from "../service/mounts.ts";
import type { SessionAccess } from "./files.ts";
import type { JoinedService } from "./service.ts";

/** How long a server has to read the last bytes of a connection that has ended. */
const UNREAD_END_MS = 1_000;

interface TunnelsOptions {
  /** The current access. */
  readonly access: () => SessionAccess;
  readonly service: () => Pick<JoinedService, "worker" | "manifest">;
  /** The last one has ended. */
  onIdle(): void;
}

export class Tunnels {
  readonly #options: TunnelsOptions;
  readonly #open = new Map<bigint, AbortController>();
  readonly #turns = new Turns();

  constructor(options: TunnelsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Connects the node with a mounted server; without its process, the node hears of its end. */
  open({ id, mount: path }: Connect): void {
    const { worker, manifest } = this.#options.service();
    const mount = manifest?.mounts?.find((each) => each.path === path);
    const endpoint = mount && mountEndpoint(mount);
    const ended = new AbortController();
    this.#open.set(id, ended);
    if (endpoint) {
      worker?.capacity.take(endpoint);
    }
    const server = connectionOf(worker?.agentOf(path));
    const carried = { ...this.#options.access(), turns: this.#turns, id, signal: ended.signal };
    void carry(server, carried).finally(() => {
      this.#open.delete(id);
      if (endpoint) {
        worker?.release(endpoint);
      }
      if (this.#open.size === 0) {
        this.#options.onIdle();
      }
    });
  }

  /** The node has left a connection. */
  end(id: bigint): void {
    this.#open.get(id)?.abort();
  }

  /** The node is gone, or has to be taken for gone. */
  endAll(): void {
    for (const ended of this.#open.values()) {
      ended.abort();
    }
  }
}

/** A connection to a mounted server, beside those that its agent keeps. */
function connectionOf(agent: Agent | undefined): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    if (agent === undefined) {
      reject(new Error("no process serves it"));
      return;
    }
    agent.createConnection({} as ClientRequestArgs, (err, connection) =>
      err ? reject(err) : resolve(connection),
    );
  });
}

/** What a server sends, in frames. */
async function* sentBy(server: Duplex): AsyncGenerator<{ readonly data: Uint8Array }> {
  for await (const chunk of server.iterator({ destroyOnReturn: false })) {
    yield* framesOf(chunk);
  }
}

interface Carried extends SessionAccess {
  readonly turns: Turns;
  readonly id: bigint;
  readonly signal: AbortSignal;
}

/** Passes bytes both ways until one side has ended. Never rejects. */
async function carry(
  server: Promise<Duplex>,
  { client, session, turns, id, signal }: Carried,
): Promise<void> {
  const sent = (async function* () {
    yield { header: { session, id } };
    yield* turns.inTurn(sentBy(await server));
  })();
  server.catch(() => {
    // Who waits for it hears that.
  });
  try {
    for await (const { data, end } of client.tunnel(sent, { signal })) {
      const connection = await server;
      if (data.length > 0 && !connection.write(data)) {
        await drained(connection, signal);
      }
      if (end) {
        connection.end();
      }
    }
    const connection = await server;
    setTimeout(() => connection.destroy(), UNREAD_END_MS).unref();
    connection.end(() => connection.destroy());
  } catch {
    // The node has left it, or hears with this that its server has.
    server.then(
      (connection) => connection.destroy(),
      () => {},
    );
  }
}

/** Resolves when it takes more, or nothing any more. */
async function drained(connection: Duplex, signal: AbortSignal): Promise<void> {
  const left = new AbortController();
  try {
    await Promise.race([
      once(connection, "drain", { signal: left.signal }),
      once(connection, "close", { signal: left.signal }),
      once(signal, "abort", { signal: left.signal }),
    ]);
  } finally {
    left.abort();
  }
}
