/**
 * Connections to the mounted servers of a worker on this machine: each server has a Unix socket in
 * the worker's scratch folder, to which the worker connects when it is asked to, and hands the
 * connection to that server as one that was accepted.
 */
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import type { MountManifest } from "../../protocol/manifest.ts";
import { mountSocketName } from "../../protocol/messages.ts";
import { type MountAgent, MountAgents } from "./mount-agents.ts";

interface MountSocketsOptions {
  readonly mounts: readonly MountManifest[];
  readonly scratchFolder: string;
  /** Asks the worker to connect once more for the server at this index. */
  connect(index: number): void;
  /** No connection to a server can come, for this reason. */
  onFault(err: Error): void;
}

/** The sockets of one worker. Dispose of it when that has ended. */
export class MountSockets implements Disposable {
  readonly #agents: MountAgents;
  readonly #servers: readonly Server[];

  constructor({ mounts, scratchFolder, connect, onFault }: MountSocketsOptions) {
    const agents = new MountAgents({ mounts, ask: connect });
    this.#agents = agents;
    this.#servers = mounts.map((_, index) => {
      const server = createServer((socket) => agents.arrived(index, socket));
      server.on("error", (err) => {
        agents.failed(index, err);
        onFault(err);
      });
      server.listen(join(scratchFolder, mountSocketName(index)));
      return server.unref();
    });
  }

  /** Connections to the server at a path. */
  agentOf(path: string): MountAgent | undefined {
    return this.#agents.agentOf(path);
  }

  [Symbol.dispose](): void {
    this.#agents[Symbol.dispose]();
    for (const server of this.#servers) {
      server.close();
    }
  }
}
