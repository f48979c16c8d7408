/** A read-through cache of other nodes' samples. */
import type { ForeignSamples, MetricsStorage } from "../storage/metrics/metrics.ts";
import type { SampleSource } from "./families.ts";
import { ReadSamples } from "./layout.ts";
import { SAMPLES_PUBLISH_INTERVAL_MS } from "./publish.ts";

/** Time without a write after which a node's samples are left out of what others answer. */
const NODE_SAMPLES_TTL_MS = 4 * SAMPLES_PUBLISH_INTERVAL_MS;

/** Time without a question after which the samples of an organization are dropped from memory. */
const ORGANIZATION_SAMPLES_FORGET_MS = 10 * 60_000;

interface ForeignOptions {
  readonly storage: MetricsStorage;
  readonly nodeId: string;
  readonly now: () => number;
  /** Called for unreadable rows, which a node of another version wrote. */
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

  /** Reads the samples of an organization. Errors: STORAGE_UNAVAILABLE. */
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
      withinMs: NODE_SAMPLES_TTL_MS,
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
          // The layout was replaced meanwhile: the previous samples are at most one
          // interval older.
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
      if (askedAtMs < nowMs - ORGANIZATION_SAMPLES_FORGET_MS) {
        this.#known.delete(organizationId);
      }
    }
  }
}
