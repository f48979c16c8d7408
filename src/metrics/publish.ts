/**
 * Publishes this node's samples to other nodes: one row per organization, every
 * five seconds. The layout is sent again only when series were added or
 * removed.
 */
import { randomUUID } from "node:crypto";
import type { MetricsStorage, SampleRow } from "../storage/metrics/metrics.ts";
import { writeLayout, writeSamples } from "./layout.ts";
import type { SampleSeries } from "./metric.ts";
import type { Metrics } from "./metrics.ts";

/**
 * Interval at which a node writes what it has counted; what others answer of it is at most
 * this much older.
 */
export const SAMPLES_PUBLISH_INTERVAL_MS = 5_000;

/** Time without a write after which the rows of a node's samples are deleted. */
const SAMPLES_PRUNE_AFTER_MS = 10 * 60_000;

/** Interval at which samples of nodes that write no more are deleted. */
const SAMPLES_PRUNE_INTERVAL_MS = 60_000;

interface PublishOptions {
  readonly metrics: Metrics;
  readonly storage: MetricsStorage;
  readonly nodeId: string;
  readonly now: () => number;
  /** Whether no other node exists to read the rows. Default: others may exist. */
  readonly isAlone?: () => boolean;
  /** Called for every failure; the next interval retries. */
  readonly onError: (err: unknown) => void;
}

interface Published {
  readonly layoutId: string;
  readonly list: readonly SampleSeries[];
}

export class Publisher implements AsyncDisposable {
  readonly #options: PublishOptions;
  readonly #published = new Map<string, Published>();
  #prunedMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  constructor(options: PublishOptions) {
    this.#options = options;
  }

  start(): void {
    const round = (): void => {
      if (!this.#options.isAlone?.()) {
        void this.publish();
      }
    };
    round();
    this.#timer = setInterval(round, SAMPLES_PUBLISH_INTERVAL_MS).unref();
  }

  /** Publishes the current samples; concurrent calls share one promise. Never rejects. */
  publish(): Promise<void> {
    this.#underWay ??= this.#publish()
      .catch(this.#options.onError)
      .finally(() => {
        this.#underWay = undefined;
      });
    return this.#underWay;
  }

  /** Stops publishing and deletes the node's rows. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#underWay;
    const { storage, nodeId, onError } = this.#options;
    await storage.dropSamples({ nodeId }).catch(onError);
  }

  async #publish(): Promise<void> {
    const { metrics, storage, nodeId, now } = this.#options;
    const { organizations } = metrics;
    for (const organizationId of organizations) {
      const row = await this.#row(organizationId, false);
      const refused = await storage.putSamples({ nodeId, nowMs: now(), rows: [row] });
      if (refused.length > 0) {
        const whole = await this.#row(organizationId, true);
        await storage.putSamples({ nodeId, nowMs: now(), rows: [whole] });
      }
    }
    for (const organizationId of [...this.#published.keys()]) {
      if (!organizations.has(organizationId)) {
        await storage.dropSamples({ nodeId, organizationId });
        this.#published.delete(organizationId);
      }
    }
    if (performance.now() - this.#prunedMs > SAMPLES_PRUNE_INTERVAL_MS) {
      this.#prunedMs = performance.now();
      await storage.pruneSamples({ nowMs: now(), afterMs: SAMPLES_PRUNE_AFTER_MS });
    }
  }

  async #row(organizationId: string, whole: boolean): Promise<SampleRow> {
    const { metrics, now } = this.#options;
    const list = metrics
      .groupsOf(organizationId)
      .flatMap(({ samples }) => [...samples.values()].flat());
    const before = this.#published.get(organizationId);
    const isSame =
      before?.list.length === list.length && before.list.every((one, at) => one === list[at]);
    const takenAtMs = now();
    const samples = await writeSamples(list, takenAtMs);
    if (before !== undefined && isSame && !whole) {
      return { organizationId, layoutId: before.layoutId, takenAtMs, samples };
    }
    const layoutId = randomUUID();
    this.#published.set(organizationId, { layoutId, list });
    const layout = await writeLayout(list);
    return { organizationId, layoutId, layout, takenAtMs, samples };
  }
}
