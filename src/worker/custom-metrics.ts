/**
 * Custom metrics in a worker: recording adds to a number in memory. Changes are sent
 * to the node once a second, and before the results of ended calls, so that the
 * counts of a finished call are never lost. Nothing is sent until the service is
 * ready.
 *
 * An invalid value or too many series do not fail the call: monitoring must not
 * break what it watches.
 */
import type { MetricManifest } from "../protocol/manifest.ts";
import { type DroppedEvents, MAX_SERIES_CHANGES_PER_MESSAGE } from "../protocol/messages.ts";
import type { MetricsOf, NoMetrics } from "../sdk/metrics.ts";
import type { Channel } from "./channel.ts";
import { type Series, Tally, takeChange } from "./custom-metric.ts";

/** Interval at which a worker sends what its service has counted. */
const COUNTS_SEND_INTERVAL_MS = 1_000;

export class Meters {
  readonly #channel: Pick<Channel, "send">;
  #tallies: readonly Tally[] = [];
  readonly #byEndpoint = new Map<string | undefined, MetricsOf<NoMetrics>>();
  #changed: Series[] = [];
  readonly #dropped = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #open = false;

  constructor(channel: Pick<Channel, "send">) {
    this.#channel = channel;
  }

  /** Sets the metrics that the service declares. */
  declare(metrics: readonly MetricManifest[]): void {
    const onChange = (series: Series): void => {
      this.#changed.push(series);
      this.#wake();
    };
    const onDropped = (metric: string): void => {
      this.#dropped.set(metric, (this.#dropped.get(metric) ?? 0) + 1);
      this.#wake();
    };
    this.#tallies = metrics.map((metric) => new Tally(metric, { onChange, onDropped }));
  }

  /** `ctx.metrics` for calls of an endpoint; undefined: outside of calls. */
  of(endpoint: string | undefined): MetricsOf<NoMetrics> {
    let meters = this.#byEndpoint.get(endpoint);
    if (meters === undefined) {
      const named = this.#tallies.map((tally) => [tally.name, tally.meter(endpoint)]);
      meters = Object.freeze(Object.fromEntries(named)) as MetricsOf<NoMetrics>;
      this.#byEndpoint.set(endpoint, meters);
    }
    return meters;
  }

  /** The node has the manifest: changes may be sent from now on. */
  open(): void {
    this.#open = true;
    this.#wake();
  }

  /** Sends all changes now; `sent` is called when they were handed to the operating system. */
  flush(sent?: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#open || (this.#changed.length === 0 && this.#dropped.size === 0)) {
      sent?.();
      return;
    }
    const changed = this.#changed;
    this.#changed = [];
    let dropped: DroppedEvents[] = Array.from(this.#dropped, ([metric, events]) => ({
      metric,
      events,
    }));
    this.#dropped.clear();
    let at = 0;
    do {
      const changes = changed.slice(at, at + MAX_SERIES_CHANGES_PER_MESSAGE).map(takeChange);
      at += MAX_SERIES_CHANGES_PER_MESSAGE;
      this.#channel.send(
        { type: "metrics", changes, dropped },
        at >= changed.length ? sent : undefined,
      );
      dropped = [];
    } while (at < changed.length);
  }

  #wake(): void {
    if (this.#open && (this.#changed.length > 0 || this.#dropped.size > 0)) {
      this.#timer ??= setTimeout(() => this.flush(), COUNTS_SEND_INTERVAL_MS).unref();
    }
  }
}
