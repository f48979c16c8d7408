/**
 * Collects the changes of a service's own metrics until they are reported: those of one series
 * become one change, so that what waits is bounded by the number of series.
 */
import type { CustomChange, CustomDeclaration } from "../metrics/custom-metric.ts";
import {
  type DroppedEvents,
  MAX_SERIES_CHANGES_PER_MESSAGE,
  type MetricChange,
} from "../protocol/messages.ts";

/** Series with changes that wait for a report; changes of further ones are counted as dropped. */
const MAX_WAITING_SERIES = 20_000;

export class MetricChanges {
  readonly #changes = new Map<string, MetricChange>();
  readonly #dropped = new Map<string, number>();

  declare(): void {
    // The node has the manifest.
  }

  workerEnded(): void {
    // The node ends the values of a worker with its session.
  }

  count(_worker: string, { name: metric, kind }: CustomDeclaration, change: CustomChange): void {
    const { endpoint, labels } = change;
    const key = JSON.stringify([metric, endpoint, labels]);
    const before = this.#changes.get(key);
    if (before === undefined && this.#changes.size >= MAX_WAITING_SERIES) {
      this.dropped(metric, 1);
      return;
    }
    this.#changes.set(key, {
      metric,
      ...change,
      ...(kind !== "gauge" && before && merged(before, change)),
    });
  }

  dropped(metric: string, events: number): void {
    this.#dropped.set(metric, (this.#dropped.get(metric) ?? 0) + events);
  }

  /** Takes what fits in one report, as JSON text; empty when there is nothing. */
  take(): string {
    if (this.#changes.size === 0 && this.#dropped.size === 0) {
      return "";
    }
    const taken = [...this.#changes].slice(0, MAX_SERIES_CHANGES_PER_MESSAGE);
    for (const [key] of taken) {
      this.#changes.delete(key);
    }
    const changes = taken.map(([, change]) => change);
    const dropped = [...this.#dropped].map(
      ([metric, events]): DroppedEvents => ({
        metric,
        events,
      }),
    );
    this.#dropped.clear();
    return JSON.stringify({ changes, dropped });
  }

  get size(): number {
    return this.#changes.size + this.#dropped.size;
  }
}

function merged(before: MetricChange, { value, counts }: CustomChange) {
  return {
    value: before.value + value,
    ...(counts && { counts: counts.map((count, at) => count + (before.counts?.[at] ?? 0)) }),
  };
}
