/**
 * Cluster membership by heartbeats in the database: how many nodes are alive. Every
 * node runs its share of each deployment's workers; when one dies, or its machine is drained, the
 * shares of the others grow. Nothing else depends on it, since any node serves any request.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Log } from "../log/log.ts";
import type { NodeFacts, NodeStorage as NodeRecords } from "../storage/hosting/nodes.ts";
import { Timer } from "../time/timer.ts";

/**
 * Interval at which a node renews its row. With maintenance and all else that it does by
 * timer, that is less than one query a second.
 */
const NODE_HEARTBEAT_INTERVAL_MS = 3_000;

/**
 * Age of its row at which a node counts as dead: more than two heartbeats; with the next one
 * of the others, a dead node's share is theirs within 11 s.
 */
const NODE_HEARTBEAT_TIMEOUT_MS = 8_000;

/** Drained machines of an organization, or of the nodes. */
export const MAX_DRAINED_MACHINES = 1_000;

interface NodeMembershipOptions {
  readonly hosting: Pick<NodeRecords, "beat" | "endNode">;
  /** True when other nodes may use the same database. */
  readonly shared: boolean;
  readonly url: string;
  /** What the node says of itself with each heartbeat, which does not wait for it. */
  readonly facts: () => NodeFacts;
  readonly now: () => number;
  readonly log: Log;
  /** The number of nodes that share the workers has changed. */
  onChange(): void;
  /**
   * The machine of this node is drained, or taken back. Called with the heartbeat that tells so,
   * and with the others that take work.
   */
  onDrained(isDrained: boolean, others: number): void;
  /** This node missed heartbeats for so long that the others considered it dead. */
  onRevived(): void;
  /** The database stored a heartbeat, or failed to. */
  onBeat(taken: boolean): void;
}

/**
 * The id of this node: the machine's name, with random digits where other nodes may share the
 * database. A single node keeps its id over restarts, and so replaces its own old reports.
 */
export function newNodeId(shared: boolean): string {
  const host = machineName();
  return shared ? `${host}-${randomBytes(4).toString("hex")}` : host;
}

function machineName(): string {
  return (
    hostname()
      .replace(/[^\w.-]/g, "")
      .slice(0, 60) || "node"
  );
}

export class NodeMembership implements AsyncDisposable {
  readonly nodeId: string;
  /** The name of this machine, which its node keeps over restarts. */
  readonly machine = machineName();
  readonly #options: NodeMembershipOptions;
  #living = 1;
  #taking = 1;
  #isDrained = false;
  #timer: Timer | undefined;
  #isAway = false;
  #lastHeartbeatMs = Number.POSITIVE_INFINITY;

  constructor(options: NodeMembershipOptions) {
    this.#options = options;
    this.nodeId = newNodeId(options.shared);
  }

  /** The number of living nodes, including this one. */
  get living(): number {
    return this.#living;
  }

  /** The number of nodes that share the workers: those that live and whose machine takes work. */
  get count(): number {
    return this.#taking;
  }

  async start(): Promise<void> {
    const { hosting, log } = this.#options;
    await hosting.endNode({ nodeId: this.nodeId });
    await this.#sendHeartbeat();
    this.#timer = new Timer(
      NODE_HEARTBEAT_INTERVAL_MS,
      () => this.#sendHeartbeat(),
      (err) => {
        this.#options.onBeat(false);
        if (!this.#isAway) {
          log.warn({ err }, "the node's heartbeat could not be stored");
        }
        this.#isAway = true;
      },
    );
  }

  /** This node's share of `total` workers, rounded up. */
  shareOf(total: number): number {
    return Math.ceil(total / Math.max(1, this.#taking));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
    await this.#options.hosting.endNode({ nodeId: this.nodeId }).catch((err: unknown) => {
      this.#options.log.warn({ err }, "the node could not say that it ends; it will be found dead");
    });
  }

  async #sendHeartbeat(): Promise<void> {
    const { hosting, url, facts, now, shared } = this.#options;
    const { onChange, onDrained, onRevived, onBeat } = this.#options;
    const { nodeId } = this;
    const beat = await hosting.beat({
      nodeId,
      machine: this.machine,
      url,
      facts: facts(),
      nowMs: now(),
      ttlMs: NODE_HEARTBEAT_TIMEOUT_MS,
    });
    this.#isAway = false;
    onBeat(true);
    const nowMs = performance.now();
    if (nowMs - this.#lastHeartbeatMs > NODE_HEARTBEAT_TIMEOUT_MS) {
      onRevived();
    }
    this.#lastHeartbeatMs = nowMs;
    const own = beat.isDrained ? 0 : 1;
    const { living, taking } = shared ? beat : { living: 1, taking: own };
    const isOther = taking !== this.#taking;
    [this.#living, this.#taking] = [living, taking];
    if (beat.isDrained || this.#isDrained) {
      this.#isDrained = beat.isDrained;
      onDrained(beat.isDrained, taking - own);
    }
    if (isOther) {
      onChange();
    }
  }
}
