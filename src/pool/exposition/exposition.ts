/**
 * What the programs of one worker expose, as changes: what each said last is compared with what it
 * says now. So the workers of a deployment can be added up, a counter that begins anew because its
 * process did is added as a whole, and what an ended worker has counted stays.
 *
 * There may be several sources: the libraries in its host, and its mounted servers. A metric that
 * more than one has is taken of the first, since they may show the same counters.
 */
import type { ExposedChange, ExposedMetric } from "../../protocol/messages.ts";
import { ExpositionError, parseExposition } from "./parse.ts";

/** Texts of a source are read once in this time; of those that come between, the last is. */
const MIN_READ_INTERVAL_MS = 500;
/** How many times as long as it took to read a text it is until the next one is read. */
const MIN_REST_TIMES = 50;

/** Metrics that the programs of a worker may expose in its life, by their names. */
const MAX_NAMES = 5_000;

interface ExpositionOptions {
  /** Metrics have changed. */
  onChanges(exposed: readonly ExposedMetric[]): void;
  /** What is exposed could not be read. */
  onUnread(): void;
  /** A line for those who look after the service. */
  onLine(line: string): void;
}

/** All sources of a worker. */
export class Exposition implements Disposable {
  readonly #options: ExpositionOptions;
  readonly #sources: ExposedSource[] = [];
  /** By the names of metrics: which source they are taken of. */
  readonly #owners = new Map<string, ExposedSource>();

  constructor(options: ExpositionOptions) {
    this.#options = options;
  }

  /** A source; `about` says for people what it is. */
  source(about: string): ExposedSource {
    const source: ExposedSource = new ExposedSource(about, this.#options, (name) => {
      const owner = this.#owners.get(name);
      if (owner === undefined && this.#owners.size < MAX_NAMES) {
        this.#owners.set(name, source);
        return true;
      }
      return owner === source;
    });
    this.#sources.push(source);
    return source;
  }

  /** Reads what waits, and nothing more afterwards. */
  [Symbol.dispose](): void {
    for (const source of this.#sources) {
      source[Symbol.dispose]();
    }
  }
}

/** A metric as a source said it last. */
interface Known {
  readonly metric: ExposedMetric;
  readonly shape: string;
  readonly series: ReadonlyMap<string, ExposedChange>;
}

export class ExposedSource implements Disposable {
  readonly #about: string;
  readonly #options: ExpositionOptions;
  /** Whether a metric is taken of this source. */
  readonly #owns: (name: string) => boolean;
  #known: ReadonlyMap<string, Known> = new Map();
  #text: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** What was said last of what is wrong. */
  #said: string | undefined;
  #ended = false;

  constructor(about: string, options: ExpositionOptions, owns: (name: string) => boolean) {
    this.#about = about;
    this.#options = options;
    this.#owns = owns;
  }

  /** All that it exposes now, in the format of Prometheus. */
  take(text: string): void {
    if (this.#ended) {
      return;
    }
    this.#text = text;
    if (this.#timer === undefined) {
      this.#readAndRest();
    }
  }

  /** It could not be asked. */
  failed(reason: string): void {
    this.#options.onUnread();
    this.#say(`cannot be read: ${reason}`);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#read();
  }

  #readAndRest(): void {
    if (this.#text === undefined) {
      this.#timer = undefined;
      return;
    }
    const begunMs = performance.now();
    this.#read();
    const restMs = Math.max(MIN_READ_INTERVAL_MS, MIN_REST_TIMES * (performance.now() - begunMs));
    this.#timer = setTimeout(() => this.#readAndRest(), restMs).unref();
  }

  #read(): void {
    const text = this.#text;
    this.#text = undefined;
    if (text === undefined) {
      return;
    }
    try {
      const { metrics, leftOut } = parseExposition(text);
      const own = metrics.filter(({ name }) => this.#owns(name));
      const known = new Map(own.map((metric) => [metric.name, knownOf(metric)]));
      const changed = changesOf(known, this.#known);
      this.#known = known;
      if (changed.length > 0) {
        this.#options.onChanges(changed);
      }
      this.#say(leftOut && `are read in part: ${leftOut}`);
    } catch (err) {
      if (!(err instanceof ExpositionError)) {
        throw err;
      }
      this.failed(err.message);
    }
  }

  /** Says what is wrong once, and when nothing is any more. */
  #say(fault: string | undefined): void {
    if (fault !== this.#said) {
      this.#options.onLine(`the metrics of ${this.#about} ${fault ?? "are read again"}`);
      this.#said = fault;
    }
  }
}

function knownOf(metric: ExposedMetric): Known {
  const { kind, buckets, changes } = metric;
  return {
    metric,
    shape: JSON.stringify([kind, buckets]),
    series: new Map(changes.map((series) => [JSON.stringify(series.labels), series])),
  };
}

/** What has changed since before, of the metrics in which anything has. */
function changesOf(
  known: ReadonlyMap<string, Known>,
  knownBefore: ReadonlyMap<string, Known>,
): ExposedMetric[] {
  const changed: ExposedMetric[] = [];
  for (const [name, { metric, shape, series }] of known) {
    const last = knownBefore.get(name);
    const before = last?.shape === shape ? last.series : new Map<string, ExposedChange>();
    const changes = [...series].flatMap(
      ([key, now]) => changeOf(metric.kind, now, before.get(key)) ?? [],
    );
    const gone = metric.kind === "gauge" ? goneOf(before, series) : [];
    if (changes.length + gone.length > 0) {
      changed.push({ ...metric, changes: [...changes, ...gone] });
    }
  }
  for (const [name, { metric, series }] of knownBefore) {
    if (metric.kind === "gauge" && !known.has(name)) {
      changed.push({ ...metric, changes: goneOf(series, new Map()) });
    }
  }
  return changed;
}

/** Gauges that are not there any more. */
function goneOf(before: Known["series"], now: Known["series"]): ExposedChange[] {
  return [...before].flatMap(([key, { labels }]) => (now.has(key) ? [] : { labels }));
}

/** The change of a series; undefined where nothing has changed. */
function changeOf(
  kind: ExposedMetric["kind"],
  now: ExposedChange,
  before: ExposedChange | undefined,
): ExposedChange | undefined {
  const { labels, value = 0, counts = [] } = now;
  if (before === undefined) {
    return now;
  }
  const { value: valueBefore = 0, counts: countsBefore = [] } = before;
  if (kind === "histogram") {
    const more = counts.map((count, at) => count - (countsBefore[at] ?? 0));
    if (more.some((count) => count < 0)) {
      return now;
    }
    return more.some((count) => count > 0)
      ? { labels, value: value - valueBefore, counts: more }
      : undefined;
  }
  if (value === valueBefore) {
    return undefined;
  }
  return kind === "gauge" || value < valueBefore ? now : { labels, value: value - valueBefore };
}
