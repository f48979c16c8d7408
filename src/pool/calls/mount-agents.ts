/**
 * HTTP/1.1 connections to the mounted servers of a worker: those of callers
 * (`mount-connection.ts`), and an agent of `node:http` for what the node itself asks of a server. A
 * worker listens nowhere. When the node wants a connection it asks the worker for one, which comes
 * over a Unix socket (`mount-sockets.ts`) or, from another machine, through a stream
 * (`remote/mounts.ts`). Connections that nobody asked for are refused.
 *
 * A request for a WebSocket gets a connection of its own, which no other request uses before or
 * after it: so the first bytes that a program sends on a connection say whether it is a WebSocket.
 */
import { Agent } from "node:http";
import type { Duplex } from "node:stream";
import type { MountManifest } from "../../protocol/manifest.ts";
import { MountConnection } from "./mount-connection.ts";

/** How long mounted servers of a worker that was told to finish may go on with their answers. */
export const MAX_LAST_ANSWER_MS = 300_000;
/** How long a worker may take to connect. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept between requests; servers keep theirs longer, so that the node closes first. */
const IDLE_CONNECTION_TIMEOUT_MS = 30_000;
/** Connections that a worker is asked for at a time: less than the kernel lets wait for a socket. */
const MAX_ASKED = 128;
/** Connections of a server that are kept between requests: as many as it takes at a time by default. */
const MAX_IDLE_CONNECTIONS = 100;

interface MountAgentsOptions {
  readonly mounts: readonly MountManifest[];
  /** Asks the worker to connect once more for the server at this index, by a number of its own. */
  ask(index: number, id: number): void;
  /** The number of a connection. Default: they count from 1. */
  nextId?(): number;
  /** Connections of a server at a time. Default: as many as it has slots. */
  readonly maxConnections?: number;
}

/** The agents of one worker. Dispose of it when that has ended. */
export class MountAgents implements Disposable {
  /** By the index of their servers. */
  readonly #agents: readonly MountAgent[];
  readonly #indexOf: ReadonlyMap<string, number>;

  constructor(given: MountAgentsOptions) {
    const { mounts, ask, maxConnections = Number.POSITIVE_INFINITY } = given;
    let asked = 0;
    const { nextId = () => ++asked } = given;
    const options = (index: number): MountAgentOptions => ({
      ...{ maxConnections, nextId },
      ask: (id) => ask(index, id),
    });
    this.#agents = mounts.map((_, index) => new MountAgent(options(index)));
    this.#indexOf = new Map(mounts.map(({ path }, index) => [path, index]));
  }

  /** The agent for the server at a path. */
  agentOf(path: string): MountAgent | undefined {
    return this.#agents[this.#indexOf.get(path) ?? -1];
  }

  /** A connection for the server at this index, which takes the place of the one asked for first. */
  arrived(index: number, connection: Duplex): void {
    if (!this.#agents[index]?.take(connection)) {
      connection.destroy();
    }
  }

  /** The connection that was asked for by this number. False where nobody waits for it. */
  take(id: number, connection: Duplex): boolean {
    return this.#agents.some((agent) => agent.take(connection, id));
  }

  /** No more connections come for the server at this index. */
  failed(index: number, fault: Error): void {
    this.#agents[index]?.end(fault);
  }

  [Symbol.dispose](): void {
    for (const agent of this.#agents) {
      agent.destroy();
    }
  }
}

type OnConnected = (err: Error | null, stream: Duplex) => void;

interface Wanted {
  readonly settle: OnConnected;
  readonly timer: NodeJS.Timeout;
}

interface MountAgentOptions {
  readonly maxConnections: number;
  /** Asks the worker to connect once more. */
  ask(id: number): void;
  nextId(): number;
}

/** The connections to one server. */
export class MountAgent extends Agent {
  readonly #options: MountAgentOptions;
  /** Connections of callers, the one that was used last at the end. */
  readonly #idle: MountConnection[] = [];
  /** All connections of callers, WebSockets too. */
  readonly #open = new Set<MountConnection>();
  #idleTimer: NodeJS.Timeout | undefined;
  /** Connections that the worker was not asked for yet, the oldest first. */
  readonly #waiting = new Map<number, Wanted>();
  /** Connections that it was asked for, the oldest first. */
  readonly #asked = new Map<number, Wanted>();
  /** Why no more connections come. */
  #fault: Error | undefined;

  constructor(options: MountAgentOptions) {
    super({
      keepAlive: true,
      timeout: IDLE_CONNECTION_TIMEOUT_MS,
      maxFreeSockets: MAX_IDLE_CONNECTIONS,
      maxSockets: options.maxConnections,
    });
    this.#options = options;
  }

  /** A connection for one request of a caller; with `isNew`, one that had no other. */
  connection({ isNew = false } = {}): MountConnection | Promise<MountConnection> {
    let idle = isNew ? undefined : this.#idle.pop();
    // One that was destroyed is told to be closed in a later turn.
    while (idle?.isDestroyed) {
      idle = this.#idle.pop();
    }
    return idle ?? this.#connect();
  }

  #connect(): Promise<MountConnection> {
    return new Promise((resolve, reject) => {
      this.#ask((err, stream) => {
        if (err !== null) {
          reject(err);
          return;
        }
        const connection = new MountConnection(stream, this.#ends);
        this.#open.add(connection);
        resolve(connection);
      });
    });
  }

  /** Takes back a connection that was not used. */
  giveBack(connection: MountConnection): void {
    this.#ends.onIdle(connection);
  }

  readonly #ends = {
    onIdle: (connection: MountConnection): void => {
      if (this.#idle.length >= MAX_IDLE_CONNECTIONS) {
        connection.destroy();
        return;
      }
      connection.idleSinceMs = performance.now();
      this.#idle.push(connection);
      this.#idleTimer ??= setTimeout(this.#endIdle, IDLE_CONNECTION_TIMEOUT_MS).unref();
    },
    onClosed: (connection: MountConnection): void => {
      this.#open.delete(connection);
      const index = this.#idle.indexOf(connection);
      if (index >= 0) {
        this.#idle.splice(index, 1);
      }
    },
  };

  /** Ends connections that nobody has used for long. */
  readonly #endIdle = (): void => {
    const sinceMs = performance.now() - IDLE_CONNECTION_TIMEOUT_MS;
    while (this.#idle[0] !== undefined && this.#idle[0].idleSinceMs <= sinceMs) {
      this.#idle.shift()?.destroy();
    }
    const [oldest] = this.#idle;
    this.#idleTimer =
      oldest && setTimeout(this.#endIdle, Math.ceil(oldest.idleSinceMs - sinceMs)).unref();
  };

  override createConnection(_options: object, settle?: OnConnected): undefined {
    if (settle === undefined) {
      throw new TypeError("a connection of a worker comes by a callback");
    }
    this.#ask(settle);
  }

  /** Asks the worker for a connection. */
  #ask(settle: OnConnected): void {
    if (this.#fault !== undefined) {
      this.#refuse(settle, this.#fault);
      return;
    }
    this.#makeRoom();
    const id = this.#options.nextId();
    const timer = setTimeout(() => {
      this.#waiting.delete(id);
      this.#asked.delete(id);
      this.#askMore();
      this.#refuse(settle, new Error("the worker did not connect in time"));
    }, CONNECT_TIMEOUT_MS);
    this.#waiting.set(id, { settle, timer });
    this.#askMore();
  }

  /** A connection that was asked for, by default the oldest. False where none was. */
  take(connection: Duplex, id = this.#asked.keys().next().value): boolean {
    const wanted = id === undefined ? undefined : this.#asked.get(id);
    if (id === undefined || wanted === undefined) {
      return false;
    }
    this.#asked.delete(id);
    clearTimeout(wanted.timer);
    this.#askMore();
    wanted.settle(null, connection);
    return true;
  }

  /** No more connections come, for this reason. */
  end(fault: Error): void {
    this.#fault ??= fault;
    const wanted = [...this.#asked.values(), ...this.#waiting.values()];
    this.#asked.clear();
    this.#waiting.clear();
    for (const { settle, timer } of wanted) {
      clearTimeout(timer);
      this.#refuse(settle, fault);
    }
  }

  override destroy(): void {
    super.destroy();
    clearTimeout(this.#idleTimer);
    for (const connection of this.#open) {
      connection.workerEnded();
    }
    this.end(new Error("the worker has ended"));
  }

  /** Ends an idle connection where there are as many as there may be: slots bound those in use. */
  #makeRoom(): void {
    const idle = Object.values(this.freeSockets).flatMap((sockets = []) => sockets);
    const used = Object.values(this.sockets).flatMap((sockets = []) => sockets);
    const wanted = this.#waiting.size + this.#asked.size;
    const open = this.#open.size + idle.length + used.length;
    if (open + wanted >= this.#options.maxConnections) {
      (this.#idle.shift() ?? idle[0])?.destroy();
    }
  }

  #askMore(): void {
    for (const [id, wanted] of this.#waiting) {
      if (this.#asked.size >= MAX_ASKED) {
        return;
      }
      this.#waiting.delete(id);
      this.#asked.set(id, wanted);
      this.#options.ask(id);
    }
  }

  /** Node's type wants a stream beside an error, and its agent reads none. */
  #refuse(settle: OnConnected, err: Error): void {
    (settle as (err: Error) => void)(err);
  }
}
