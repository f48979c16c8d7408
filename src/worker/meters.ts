/**
 * What a service counts, in its worker. Counting is adding to a number; what
 * has changed goes to the node once a second, and before the results of calls
 * that have ended, so that nothing is lost that a finished call counted. Until
 * the service is ready nothing is sent.
 *
 * Neither a value that cannot be counted nor too many series are an error of
 * the call: monitoring must not break what it watches.
 */
import type { MetricManifest } from "../protocol/manifest.ts";
import { type DroppedEvents, MAX_CHANGES_PER_MESSAGE } from "../protocol/messages.ts";
import type { MetricsOf, NoMetrics } from "../sdk/metrics.ts";
import type { Channel } from "./channel.ts";
import { type Series, Tally, takeChange } from "./tally.ts";

const SEND_EVERY_MS = 1_000;

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

  /** What the service counts. */
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

  /** `ctx.metrics` in calls of an endpoint, or outside of calls. */
  of(endpoint: string | undefined): MetricsOf<NoMetrics> {
    let meters = this.#byEndpoint.get(endpoint);
    if (meters === undefined) {
      const named = this.#tallies.map((tally) => [tally.name, tally.meter(endpoint)]);
      meters = Object.freeze(Object.fromEntries(named)) as MetricsOf<NoMetrics>;
      this.#byEndpoint.set(endpoint, meters);
    }
    return meters;
  }

  /** The node knows the service: what is counted may be sent from now on. */
  open(): void {
    this.#open = true;
    this.#wake();
  }

  /** Sends what waits; `sent` is called when it has been handed to the system. */
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
      const changes = changed.slice(at, at + MAX_CHANGES_PER_MESSAGE).map(takeChange);
      at += MAX_CHANGES_PER_MESSAGE;
      this.#channel.send(
        { type: "metrics", changes, dropped },
        at >= changed.length ? sent : undefined,
      );
      dropped = [];
    } while (at < changed.length);
  }

  #wake(): void {
    if (this.#open && (this.#changed.length > 0 || this.#dropped.size > 0)) {
      this.#timer ??= setTimeout(() => this.flush(), SEND_EVERY_MS).unref();
    }
  }
}
