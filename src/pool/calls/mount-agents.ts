/**
 * HTTP/1.1 connections to the mounted servers of a worker, as agents of `node:http`. A worker
 * listens nowhere. When the node wants a connection it asks the worker for one, which connects to a
 * Unix socket in its scratch folder, one for each server, and hands the connection to that server
 * as one that was accepted. Connections that nobody asked for are closed.
 */
import { Agent } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { MountManifest } from "../../protocol/manifest.ts";
import { mountSocketName } from "../../protocol/messages.ts";

/** How long a worker may take to connect. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is kept between requests; servers keep theirs longer, so that the node closes first. */
const IDLE_CONNECTION_TIMEOUT_MS = 30_000;
/** Connections that a worker is asked for at a time: less than the kernel lets wait for a socket. */
const MAX_ASKED = 128;
/** Connections of a server that are kept between requests. */
const MAX_IDLE_CONNECTIONS = 64;

interface MountAgentsOptions {
  readonly mounts: readonly MountManifest[];
  readonly scratchFolder: string;
  /** Asks the worker to connect once more for the server at this index. */
  connect(index: number): void;
  /** No connection to a server can come, for this reason. */
  onFault(err: Error): void;
}

/** The agents of one worker. Dispose of it when that has ended. */
export class MountAgents implements Disposable {
  readonly #agents: ReadonlyMap<string, MountAgent>;

  constructor({ mounts, scratchFolder, connect, onFault }: MountAgentsOptions) {
    this.#agents = new Map(
      mounts.map(({ path }, index) => {
        const socket = join(scratchFolder, mountSocketName(index));
        return [path, new MountAgent(socket, { ask: () => connect(index), onFault })];
      }),
    );
  }

  /** The agent for the server at a path. */
  agentOf(path: string): Agent | undefined {
    return this.#agents.get(path);
  }

  [Symbol.dispose](): void {
    for (const agent of this.#agents.values()) {
      agent.destroy();
    }
  }
}

type OnConnected = (err: Error | null, stream: Duplex) => void;

interface Asked {
  readonly settle: OnConnected;
  readonly timer: NodeJS.Timeout;
}

class MountAgent extends Agent {
  readonly #server: Server;
  readonly #ask: () => void;
  /** Connections that are wanted, the oldest first. */
  readonly #asked: Asked[] = [];
  /** How many of them the worker was asked for. */
  #underWay = 0;
  /** Why no more connections come. */
  #fault: Error | undefined;

  constructor(
    socketPath: string,
    { ask, onFault }: { readonly ask: () => void; readonly onFault: (err: Error) => void },
  ) {
    super({
      keepAlive: true,
      timeout: IDLE_CONNECTION_TIMEOUT_MS,
      maxFreeSockets: MAX_IDLE_CONNECTIONS,
    });
    this.#ask = ask;
    this.#server = createServer((socket) => this.#connected(socket));
    this.#server.on("error", (err) => {
      this.#end(err);
      onFault(err);
    });
    this.#server.listen(socketPath);
    this.#server.unref();
  }

  override createConnection(_options: object, settle?: OnConnected): undefined {
    if (settle === undefined) {
      throw new TypeError("a connection of a worker comes by a callback");
    }
    if (this.#fault !== undefined) {
      this.#refuse(settle, this.#fault);
      return;
    }
    const asked: Asked = {
      settle,
      timer: setTimeout(() => {
        this.#asked.splice(this.#asked.indexOf(asked), 1);
        this.#underWay = Math.max(0, this.#underWay - 1);
        this.#askMore();
        this.#refuse(settle, new Error("the worker did not connect in time"));
      }, CONNECT_TIMEOUT_MS),
    };
    this.#asked.push(asked);
    this.#askMore();
  }

  override destroy(): void {
    super.destroy();
    this.#end(new Error("the worker has ended"));
  }

  #connected(socket: Socket): void {
    const asked = this.#asked.shift();
    if (asked === undefined) {
      socket.destroy();
      return;
    }
    clearTimeout(asked.timer);
    this.#underWay = Math.max(0, this.#underWay - 1);
    this.#askMore();
    asked.settle(null, socket);
  }

  #askMore(): void {
    while (this.#underWay < Math.min(this.#asked.length, MAX_ASKED)) {
      this.#underWay += 1;
      this.#ask();
    }
  }

  #end(fault: Error): void {
    this.#fault ??= fault;
    this.#server.close();
    for (const { settle, timer } of this.#asked.splice(0)) {
      clearTimeout(timer);
      this.#refuse(settle, fault);
    }
  }

  /** Node's type wants a stream beside an error, and its agent reads none. */
  #refuse(settle: OnConnected, err: Error): void {
    (settle as (err: Error) => void)(err);
  }
}
