/**
 * Connections to the mounted servers of a worker on another machine. The worker is asked for each
 * on its stream and brings it as a tunnel. They end with the stream, and a worker that comes back
 * over another one brings others.
 */
import type { MountManifest } from "../../protocol/manifest.ts";
import { type MountAgent, MountAgents } from "../calls/mount-agents.ts";
import type { RemoteMessage } from "./messages.ts";
import type { Tunnel } from "./tunnel.ts";

/** Tunnels of one worker: fewer than the streams of its HTTP/2 connection, which has others. */
const MAX_TUNNELS = 200;
/** How long the end of a tunnel may wait behind bytes that the worker does not read. */
const UNREAD_END_MS = 1_000;

interface RemoteMountsOptions {
  readonly mounts: readonly MountManifest[];
  /** The number of a connection, which no other of the worker has or had. */
  readonly nextId: () => number;
  send(message: RemoteMessage): void;
}

export class RemoteMounts implements Disposable {
  readonly #agents: MountAgents;
  readonly #send: RemoteMountsOptions["send"];
  readonly #open = new Set<Tunnel>();

  constructor({ mounts, send, nextId }: RemoteMountsOptions) {
    this.#send = send;
    this.#agents = new MountAgents({
      ...{ mounts, nextId },
      ask: (index, id) => send({ type: "connect", id, mount: mounts[index]?.path ?? "" }),
      maxConnections: tunnelsFor(mounts),
    });
  }

  /** Connections to the server at a path. */
  agentOf(path: string): MountAgent | undefined {
    return this.#agents.agentOf(path);
  }

  /** The worker brings a connection. False where nobody waits for it. */
  take(id: number, tunnel: Tunnel): boolean {
    if (!this.#agents.take(id, tunnel)) {
      return false;
    }
    this.#open.add(tunnel);
    tunnel.once("left", () => this.#open.delete(tunnel));
    tunnel.once("close", () => {
      const unread = setTimeout(() => this.#send({ type: "disconnect", id }), UNREAD_END_MS);
      unread.unref();
      tunnel.once("left", () => clearTimeout(unread));
    });
    return true;
  }

  [Symbol.dispose](): void {
    this.#agents[Symbol.dispose]();
    for (const tunnel of this.#open) {
      tunnel.destroy(new Error("the worker was cut off"));
    }
  }
}

/** The tunnels that each of these servers may have. */
export function tunnelsFor(mounts: readonly MountManifest[]): number {
  return Math.floor(MAX_TUNNELS / Math.max(1, mounts.length));
}
