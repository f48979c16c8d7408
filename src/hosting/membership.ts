/**
 * The nodes that live, as each knows from the heartbeats of all. Every node
 * runs its share of each deployment's workers; when one dies, the shares of
 * the others grow. Nothing else depends on it: any node serves any request.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Log } from "../log/log.ts";
import type { NodeStorage as NodeRecords } from "../storage/hosting/nodes.ts";
import { Timer } from "../time/timer.ts";

/** With the node's rounds and all else that it does by timer, less than one question a second. */
const BEAT_MS = 3_000;

/** More than two beats: with the next one of the others, a dead node's share is theirs within 11 s. */
const LIVES_MS = 8_000;

export interface NodeMembershipOptions {
  readonly hosting: Pick<NodeRecords, "beat" | "endNode">;
  /** Other nodes may use the same database. */
  readonly shared: boolean;
  readonly url: string;
  readonly now: () => number;
  readonly log: Log;
  /** Nodes came or went. */
  onChange(): void;
  /** It was silent for so long that the others took it for dead. */
  onRevived(): void;
  /** The database took a heartbeat, or did not. */
  onBeat(taken: boolean): void;
}

export class NodeMembership implements AsyncDisposable {
  readonly nodeId: string;
  readonly #options: NodeMembershipOptions;
  #count = 1;
  #timer: Timer | undefined;
  #isAway = false;
  #beatMs = Number.POSITIVE_INFINITY;

  constructor(options: NodeMembershipOptions) {
    this.#options = options;
    const host =
      hostname()
        .replace(/[^\w.-]/g, "")
        .slice(0, 60) || "node";
    // Alone it is the same one after a restart, whatever it reported before it was killed.
    this.nodeId = options.shared ? `${host}-${randomBytes(4).toString("hex")}` : host;
  }

  /** How many nodes live, this one included. */
  get count(): number {
    return this.#count;
  }

  async start(): Promise<void> {
    const { hosting, log } = this.#options;
    await hosting.endNode({ nodeId: this.nodeId });
    await this.#beat();
    this.#timer = new Timer(
      BEAT_MS,
      () => this.#beat(),
      (err) => {
        this.#options.onBeat(false);
        if (!this.#isAway) {
          log.warn({ err }, "the node's heartbeat could not be stored");
        }
        this.#isAway = true;
      },
    );
  }

  /** Workers of a deployment that run here when `total` run everywhere. */
  shareOf(total: number): number {
    return Math.ceil(total / this.#count);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
    await this.#options.hosting.endNode({ nodeId: this.nodeId }).catch((err: unknown) => {
      this.#options.log.warn({ err }, "the node could not say that it ends; it will be found dead");
    });
  }

  async #beat(): Promise<void> {
    const { hosting, url, now, shared, onChange, onRevived, onBeat } = this.#options;
    const { nodeId } = this;
    const living = await hosting.beat({ nodeId, url, nowMs: now(), ttlMs: LIVES_MS });
    this.#isAway = false;
    onBeat(true);
    const nowMs = performance.now();
    if (nowMs - this.#beatMs > LIVES_MS) {
      onRevived();
    }
    this.#beatMs = nowMs;
    const count = shared ? living : 1;
    if (count !== this.#count) {
      this.#count = count;
      onChange();
    }
  }
}
