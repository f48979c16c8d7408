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
import {
  type DroppedEvents,
  MAX_SERIES_CHANGES_PER_MESSAGE,
  MAX_WORKER_SERIES_PER_METRIC,
  type MetricChange,
} from "../protocol/messages.ts";
import { MAX_LABEL_VALUE_CHARACTERS } from "../sdk/metric-rules.ts";
import type { MetricsOf, NoMetrics } from "../sdk/metrics.ts";
import type { Channel } from "./channel.ts";

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

// One custom metric in a worker: its series, and the object with which user code records.

/** One series: one combination of label values. */
interface Series {
  readonly metric: string;
  readonly endpoint: string | undefined;
  readonly labels: readonly string[];
  /** A counter's increment since it was last sent, a gauge's value, or the sum of a histogram's new values. */
  value: number;
  /** Of a histogram: the number of new values in each bucket, +Inf last. */
  counts: number[] | undefined;
  /** True for a gauge, whose value is not reset after sending. */
  readonly lasts: boolean;
  /** True when the series waits to be sent. */
  changed: boolean;
}

interface TallyListener {
  /** A series has something to send. */
  onChange(series: Series): void;
  /** An event was dropped, because there are too many series. */
  onDropped(metric: string): void;
}

type Labels = Readonly<Record<string, unknown>> | undefined;

class Tally {
  readonly name: string;
  readonly #metric: MetricManifest;
  readonly #listener: TallyListener;
  readonly #series = new Map<string, Series>();
  #complained = false;

  constructor(metric: MetricManifest, listener: TallyListener) {
    this.name = metric.name;
    this.#metric = metric;
    this.#listener = listener;
  }

  /**
   * The object with which user code records in calls of an endpoint. A gauge belongs
   * to the worker, so it ignores the endpoint.
   */
  meter(endpoint: string | undefined): object {
    switch (this.#metric.kind) {
      case "counter":
        return {
          add: (amount: unknown = 1, labels?: Labels) => this.#add(endpoint, amount, labels),
        };
      case "gauge":
        return {
          set: (value: unknown, labels?: Labels) => this.#set(value, labels, false),
          add: (amount: unknown, labels?: Labels) => this.#set(amount, labels, true),
        };
      case "histogram":
        return {
          observe: (value: unknown, labels?: Labels) => this.#observe(endpoint, value, labels),
        };
    }
  }

  #add(endpoint: string | undefined, amount: unknown, labels: Labels): void {
    if (typeof amount === "number" && amount < 0) {
      this.#complain("a counter only goes up: it cannot add a negative amount");
      return;
    }
    const series = this.#isFinite(amount) && this.#find(endpoint, labels);
    if (series) {
      this.#become(series, series.value + amount);
    }
  }

  #set(value: unknown, labels: Labels, relative: boolean): void {
    const series = this.#isFinite(value) && this.#find(undefined, labels);
    if (series) {
      this.#become(series, relative ? series.value + value : value);
    }
  }

  #observe(endpoint: string | undefined, value: unknown, labels: Labels): void {
    const series = this.#isFinite(value) && this.#find(endpoint, labels);
    if (series && this.#become(series, series.value + value)) {
      const { buckets = [] } = this.#metric;
      series.counts ??= new Array<number>(buckets.length + 1).fill(0);
      const index = buckets.findIndex((bound) => value <= bound);
      const at = index === -1 ? buckets.length : index;
      series.counts[at] = (series.counts[at] as number) + 1;
    }
  }

  /** Sets a new value. False when the sum is too large for a number. */
  #become(series: Series, value: number): boolean {
    if (!this.#isFinite(value)) {
      return false;
    }
    series.value = value;
    if (!series.changed) {
      series.changed = true;
      this.#listener.onChange(series);
    }
    return true;
  }

  /** The series with these labels; undefined for wrong labels or too many series. */
  #find(endpoint: string | undefined, given: Labels): Series | undefined {
    const { labels: names } = this.#metric;
    const values: string[] = [];
    let key = endpoint ?? "";
    for (const name of names) {
      const value = given?.[name];
      if (typeof value !== "string" && typeof value !== "number") {
        this.#complain(`the label ${name} must be given, as a string or a number`);
        return undefined;
      }
      const text = clipped(String(value));
      values.push(text);
      // The lengths make the key unambiguous.
      key += `\n${text.length}:${text}`;
    }
    return this.#series.get(key) ?? this.#create(key, endpoint, { given, values });
  }

  #create(
    key: string,
    endpoint: string | undefined,
    { given, values }: { readonly given: Labels; readonly values: readonly string[] },
  ): Series | undefined {
    const { name, labels, kind } = this.#metric;
    const unknown = Object.keys(given ?? {}).find((label) => !labels.includes(label));
    if (unknown !== undefined) {
      this.#complain(`it declares no label ${JSON.stringify(unknown.slice(0, 100))}`);
      return undefined;
    }
    if (this.#series.size >= MAX_WORKER_SERIES_PER_METRIC) {
      this.#listener.onDropped(name);
      return undefined;
    }
    const series: Series = {
      metric: name,
      endpoint,
      labels: values,
      value: 0,
      counts: undefined,
      lasts: kind === "gauge",
      changed: false,
    };
    this.#series.set(key, series);
    return series;
  }

  #isFinite(value: unknown): value is number {
    if (Number.isFinite(value)) {
      return true;
    }
    const shown = typeof value === "number" ? String(value) : `a value of type ${typeof value}`;
    this.#complain(`it counts finite numbers, not ${shown}`);
    return false;
  }

  /** Reports only once per metric and worker: a mistake in a loop must not fill the log. */
  #complain(fault: string): void {
    if (!this.#complained) {
      this.#complained = true;
      process.stderr.write(
        `metric ${this.name}: ${fault}; this was not counted, and more of it is not reported\n`,
      );
    }
  }
}

/** Takes the change of a series to send it, and resets the series; a gauge keeps its value. */
function takeChange(series: Series): MetricChange {
  const { metric, endpoint, labels, value, counts, lasts } = series;
  series.changed = false;
  series.counts = undefined;
  series.value = lasts ? value : 0;
  return {
    metric,
    labels,
    value,
    ...(endpoint !== undefined && { endpoint }),
    ...(counts && { counts }),
  };
}

function clipped(text: string): string {
  return (
    text.length > MAX_LABEL_VALUE_CHARACTERS ? text.slice(0, MAX_LABEL_VALUE_CHARACTERS) : text
  ).toWellFormed();
}
