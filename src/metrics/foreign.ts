/** What other nodes count, read when somebody asks for it. */
import type { ForeignSamples, MetricsStorage } from "../storage/metrics/metrics.ts";
import type { SampleSource } from "./families.ts";
import { ReadSamples } from "./layout.ts";
import { PUBLISH_MS } from "./publish.ts";

/** A node that has not written for so long is gone, and what it counted is left out. */
const GONE_AFTER_MS = 4 * PUBLISH_MS;

/** Organizations that nobody has asked about for so long are forgotten. */
const FORGET_AFTER_MS = 10 * 60_000;

export interface ForeignOptions {
  readonly storage: MetricsStorage;
  readonly nodeId: string;
  readonly now: () => number;
  /** Told of rows that cannot be read: a node of another version wrote them. */
  readonly onError: (err: unknown) => void;
}

interface Known {
  readonly nodes: Map<string, ReadSamples>;
  askedAtMs: number;
}

export class ForeignMetrics {
  readonly #options: ForeignOptions;
  readonly #known = new Map<string, Known>();

  constructor(options: ForeignOptions) {
    this.#options = options;
  }

  /** Reads what there is of an organization. Errors: STORAGE_UNAVAILABLE. */
  async read(organizationId: string): Promise<SampleSource> {
    const { storage, nodeId, now } = this.#options;
    const nowMs = now();
    this.#forget(nowMs);
    const known = this.#known.get(organizationId) ?? { nodes: new Map(), askedAtMs: nowMs };
    known.askedAtMs = nowMs;
    this.#known.set(organizationId, known);
    const rows = await storage.listSamples({
      organizationId,
      exceptNodeId: nodeId,
      nowMs,
      withinMs: GONE_AFTER_MS,
    });
    const nodes: ReadSamples[] = [];
    for (const row of rows) {
      const read = await this.#readNode(organizationId, row, known.nodes.get(row.nodeId));
      if (read !== undefined) {
        known.nodes.set(row.nodeId, read);
        nodes.push(read);
      }
    }
    const there = new Set(rows.map((row) => row.nodeId));
    for (const gone of [...known.nodes.keys()].filter((id) => !there.has(id))) {
      known.nodes.delete(gone);
    }
    return {
      samplesOf: (asked) => (asked === organizationId ? nodes.map(({ samples }) => samples) : []),
    };
  }

  async #readNode(
    organizationId: string,
    { nodeId, layoutId, samples, takenAtMs }: ForeignSamples,
    before: ReadSamples | undefined,
  ): Promise<ReadSamples | undefined> {
    try {
      let read = before?.layoutId === layoutId ? before : undefined;
      if (read === undefined) {
        const layout = await this.#options.storage.getLayout({ organizationId, nodeId, layoutId });
        if (layout === undefined) {
          // It was replaced since: what is known of the node is at most one turn older.
          return before;
        }
        read = await ReadSamples.read(layoutId, layout);
      }
      read.update(samples, takenAtMs);
      return read;
    } catch (err) {
      this.#options.onError(err);
      return undefined;
    }
  }

  #forget(nowMs: number): void {
    for (const [organizationId, { askedAtMs }] of this.#known) {
      if (askedAtMs < nowMs - FORGET_AFTER_MS) {
        this.#known.delete(organizationId);
      }
    }
  }
}
