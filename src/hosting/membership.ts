/**
 * Cluster membership by heartbeats in the database: how many nodes are alive. Every
 * node runs its share of each deployment's workers; when one dies, the shares of
 * the others grow. Nothing else depends on it, since any node serves any request.
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

interface NodeMembershipOptions {
  readonly hosting: Pick<NodeRecords, "beat" | "endNode">;
  /** True when other nodes may use the same database. */
  readonly shared: boolean;
  readonly url: string;
  /** What the node says of itself with each heartbeat, which does not wait for it. */
  readonly facts: () => NodeFacts;
  readonly now: () => number;
  readonly log: Log;
  /** The number of living nodes has changed. */
  onChange(): void;
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
  const host =
    hostname()
      .replace(/[^\w.-]/g, "")
      .slice(0, 60) || "node";
  return shared ? `${host}-${randomBytes(4).toString("hex")}` : host;
}

export class NodeMembership implements AsyncDisposable {
  readonly nodeId: string;
  readonly #options: NodeMembershipOptions;
  #count = 1;
  #timer: Timer | undefined;
  #isAway = false;
  #lastHeartbeatMs = Number.POSITIVE_INFINITY;

  constructor(options: NodeMembershipOptions) {
    this.#options = options;
    this.nodeId = newNodeId(options.shared);
  }

  /** The number of living nodes, including this one. */
  get count(): number {
    return this.#count;
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
    return Math.ceil(total / this.#count);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
    await this.#options.hosting.endNode({ nodeId: this.nodeId }).catch((err: unknown) => {
      this.#options.log.warn({ err }, "the node could not say that it ends; it will be found dead");
    });
  }

  async #sendHeartbeat(): Promise<void> {
    const { hosting, url, facts, now, shared, onChange, onRevived, onBeat } = this.#options;
    const { nodeId } = this;
    const living = await hosting.beat({
      nodeId,
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
    const count = shared ? living : 1;
    if (count !== this.#count) {
      this.#count = count;
      onChange();
    }
  }
}
