/**
 * Reads the text format of Prometheus, in which programs expose their metrics. Source: the
 * exposition formats document of Prometheus, version 0.0.4; what OpenMetrics writes otherwise
 * (`# EOF`, exemplars, counters whose type is said without `_total`) is read too.
 *
 * As Prometheus does, it reads all of a text or nothing: half of a page would look like counters
 * that went down. What it says of metrics that cannot be shown is left out, and said.
 *
 * A summary is read as a histogram without buckets: its sum and its count can be added over
 * workers, and its quantiles cannot. The time at which each series was made (`_created`) is left
 * out, and what libraries say of their own process: the platform measures it.
 */
import type { ExposedChange, ExposedMetric } from "../../protocol/messages.ts";
import {
  aggregatorOf,
  isAggregator,
  isExposedName,
  isExposedValue,
  labelNameFor,
  MAX_EXPOSED_BUCKETS,
  MAX_EXPOSED_HELP_CHARACTERS,
  MAX_EXPOSED_LABELS,
} from "./rules.ts";

/** Lines with samples in one text that are read: more than are ever shown, as some are left out. */
const MAX_SAMPLES = 10_000;

/** What libraries say of the process that they run in. */
const OF_PROCESS = /^(?:process_|python_gc_|python_info$)/;

const NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
/** A number as Go reads it, and a time that may follow it. */
const VALUE =
  /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?|nan)(?:[ \t]+-?\d+(?:\.\d+)?)?$/i;
/** How a sample belongs to the histogram or summary of the same name without it. */
const PART = /_(bucket|sum|count)$/;

interface Exposed {
  /** With the values that they have now. */
  readonly metrics: readonly ExposedMetric[];
  /** Why a part of them is left out; undefined where nothing is. */
  readonly leftOut: string | undefined;
}

/** The text is not in the format; the message says where. */
export class ExpositionError extends Error {}

/** The metrics in a text. Throws an ExpositionError. */
export function parseExposition(text: string): Exposed {
  const page = new Page();
  let number = 0;
  for (let at = 0; at < text.length && page.hasRoom; ) {
    const found = text.indexOf("\n", at);
    const end = found === -1 ? text.length : found;
    const line = text.slice(at, text[end - 1] === "\r" ? end - 1 : end);
    at = end + 1;
    number += 1;
    try {
      if (line.startsWith("#")) {
        page.comment(line);
      } else if (line.trim() !== "") {
        page.sample(readSample(line.trimStart()));
      }
    } catch (err) {
      if (err instanceof ExpositionError) {
        throw new ExpositionError(`line ${number} ${err.message}`);
      }
      throw err;
    }
  }
  return page.read();
}

interface Sample {
  readonly name: string;
  /** By the names of the text. */
  readonly labels: readonly (readonly [name: string, value: string])[];
  readonly value: number;
}

const SPACE = 0x20;
const TAB = 0x09;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const EQUALS = 0x3d;
const OPENS = 0x7b;
const CLOSES = 0x7d;

function readSample(line: string): Sample {
  const name = nameAt(line, 0);
  let at = skipSpace(line, name.length);
  const labels: (readonly [string, string])[] = [];
  if (line.charCodeAt(at) === OPENS) {
    at = skipSpace(line, at + 1);
    while (line.charCodeAt(at) !== CLOSES) {
      const label = nameAt(line, at);
      const equals = skipSpace(line, at + label.length);
      const quote = skipSpace(line, equals + 1);
      if (line.charCodeAt(equals) !== EQUALS || line.charCodeAt(quote) !== QUOTE) {
        throw new ExpositionError(`has a label ${shown(label)} without a value in quotes`);
      }
      const end = endOfQuoted(line, quote + 1);
      labels.push([label, unescaped(line.slice(quote + 1, end))]);
      at = skipSpace(line, end + 1);
      const next = line.charCodeAt(at);
      if (next === COMMA) {
        at = skipSpace(line, at + 1);
      } else if (next !== CLOSES) {
        throw new ExpositionError("has labels that do not end with }");
      }
    }
    at += 1;
  }
  return { name, labels, value: valueIn(line.slice(skipSpace(line, at))) };
}

/** The value of a sample; a time may follow it, and an exemplar after a `#`. */
function valueIn(rest: string): number {
  const exemplar = rest.indexOf("#");
  const text = (exemplar === -1 ? rest : rest.slice(0, exemplar)).trimEnd();
  const match = VALUE.exec(text);
  if (match === null) {
    throw new ExpositionError(`has a value that is no number: ${shown(rest)}`);
  }
  const word = match[1] as string;
  const value = Number(word);
  if (!Number.isNaN(value) || /nan/i.test(word)) {
    return value;
  }
  return word.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

function nameAt(line: string, at: number): string {
  NAME.lastIndex = at;
  const name = NAME.exec(line)?.[0];
  if (name === undefined) {
    throw new ExpositionError(`has no name where one should be: ${shown(line.slice(at))}`);
  }
  return name;
}

function skipSpace(line: string, at: number): number {
  let to = at;
  for (let code = line.charCodeAt(to); code === SPACE || code === TAB; ) {
    to += 1;
    code = line.charCodeAt(to);
  }
  return to;
}

function endOfQuoted(line: string, begin: number): number {
  for (let at = begin; at < line.length; at += 1) {
    const code = line.charCodeAt(at);
    if (code === QUOTE) {
      return at;
    }
    if (code === BACKSLASH) {
      at += 1;
    }
  }
  throw new ExpositionError("has a value of a label that does not end");
}

const ESCAPED: Readonly<Record<string, string>> = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };

function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\[n"\\]/g, (each) => ESCAPED[each] ?? each) : text;
}

type Type = "counter" | "gauge" | "histogram" | "summary";

/** One histogram or summary with one set of labels. */
interface Parts {
  readonly labels: readonly string[];
  /** Cumulative counts by upper bound. */
  readonly upTo: Map<number, number>;
  sum: number;
  count: number | undefined;
}

/** What has been read of a text. */
class Page {
  readonly #types = new Map<string, Type>();
  readonly #helps = new Map<string, string>();
  readonly #aggregators = new Map<string, ExposedMetric["aggregator"]>();
  /** Counters and gauges by name, then by their labels. */
  readonly #simple = new Map<string, Map<string, ExposedChange>>();
  readonly #distributions = new Map<string, Map<string, Parts>>();
  readonly #labels = new ShownLabels();
  readonly #names = new Map<string, boolean>();
  #samples = 0;
  #leftOut = 0;
  /** Why the first of those that are left out is. */
  #reason = "";

  /** False where all else that follows is left out. */
  get hasRoom(): boolean {
    return this.#samples <= MAX_SAMPLES;
  }

  comment(line: string): void {
    // What the last part did not match would be looked for again from each character: it takes all.
    const [, keyword, name = "", rest = ""] = /^#\s*(\S+)\s+(\S+)\s*(.*)/s.exec(line) ?? [];
    switch (keyword) {
      case "TYPE":
        this.#types.set(name, typeOf(rest.trim()));
        break;
      case "HELP":
        this.#helps.set(name, unescaped(rest).slice(0, MAX_EXPOSED_HELP_CHARACTERS));
        break;
      case "AGGREGATOR":
        // Not of the format: the Python host says it of gauges.
        if (isAggregator(rest)) {
          this.#aggregators.set(name, rest);
        }
        break;
      default:
    }
  }

  sample({ name, labels: given, value }: Sample): void {
    this.#samples += 1;
    if (!this.hasRoom) {
      this.#leaveOut(name, `${MAX_SAMPLES} samples before it, which are the most that are read`);
      return;
    }
    if (OF_PROCESS.test(name) || this.#isCreation(name)) {
      return;
    }
    const part = PART.exec(name)?.[1];
    const whole = part === undefined ? name : name.slice(0, -part.length - 1);
    const isPart = part !== undefined && isDistribution(this.#types.get(whole));
    if (!isPart && isDistribution(this.#types.get(name))) {
      // Quantiles of several workers cannot be put together.
      return;
    }
    const family = isPart ? whole : name;
    const isBucket = isPart && part === "bucket";
    const bound = isBucket ? given.find(([label]) => label === "le")?.[1] : undefined;
    const labels = this.#isExposed(family)
      ? this.#labels.of(isBucket ? given.filter(([label]) => label !== "le") : given)
      : "a name of the platform or of Prometheus, or one that is too long";
    if (typeof labels === "string") {
      this.#leaveOut(name, labels);
    } else if (isPart) {
      this.#add(family, labels, { part, value, bound });
    } else if (!Number.isFinite(value)) {
      this.#leaveOut(name, "a value that is no finite number");
    } else {
      const key = keyOf(labels);
      const series = this.#simple.get(name) ?? new Map<string, ExposedChange>();
      this.#simple.set(name, series);
      if (series.has(key)) {
        this.#leaveOut(name, "a series twice");
      } else {
        series.set(key, { labels, value });
      }
    }
  }

  read(): Exposed {
    const metrics: ExposedMetric[] = [];
    for (const [name, series] of this.#simple) {
      const isCounter =
        this.#types.get(name) === "counter" ||
        this.#types.get(name.replace(/_total$/, "")) === "counter";
      const kind = isCounter ? "counter" : "gauge";
      const changes = [...series.values()];
      if (isCounter && changes.some(({ value = 0 }) => value < 0)) {
        this.#leaveOut(name, "a counter below zero");
      } else {
        const aggregator = this.#aggregators.get(name) ?? aggregatorOf(name);
        metrics.push({
          ...{ name, kind, help: this.#helpOf(name), changes },
          ...(kind === "gauge" && { aggregator }),
        });
      }
    }
    for (const [name, series] of this.#distributions) {
      const metric = this.#distribution(name, [...series.values()]);
      if (typeof metric === "string") {
        this.#leaveOut(name, metric);
      } else {
        metrics.push(metric);
      }
    }
    const others = this.#leftOut > 1 ? `, and ${this.#leftOut - 1} more` : "";
    return { metrics, leftOut: this.#leftOut === 0 ? undefined : `${this.#reason}${others}` };
  }

  #add(
    family: string,
    labels: readonly string[],
    { part, value, bound }: { part: string; value: number; bound: string | undefined },
  ): void {
    const key = keyOf(labels);
    const series = this.#distributions.get(family) ?? new Map<string, Parts>();
    this.#distributions.set(family, series);
    const parts = series.get(key) ?? { labels, upTo: new Map(), sum: 0, count: undefined };
    series.set(key, parts);
    if (part === "sum") {
      parts.sum = value;
    } else if (part === "count") {
      parts.count = value;
    } else if (bound !== undefined) {
      parts.upTo.set(valueIn(bound), value);
    } else {
      throw new ExpositionError(`is a bucket of ${shown(family)} without its bound`);
    }
  }

  /** A histogram with its values, or why it cannot be shown. */
  #distribution(name: string, series: readonly Parts[]): ExposedMetric | string {
    const bounds = (upTo: Parts["upTo"]): number[] =>
      [...upTo.keys()].filter((bound) => bound !== Number.POSITIVE_INFINITY).sort((a, b) => a - b);
    const buckets = bounds((series[0] as Parts).upTo);
    if (buckets.length > MAX_EXPOSED_BUCKETS || !buckets.every(Number.isFinite)) {
      return `more than ${MAX_EXPOSED_BUCKETS} buckets, or one without a finite bound`;
    }
    const changes: ExposedChange[] = [];
    for (const { labels, upTo, sum, count } of series) {
      const own = bounds(upTo);
      if (own.length !== buckets.length || own.some((bound, at) => bound !== buckets[at])) {
        return "series with different buckets";
      }
      const whole = count ?? upTo.get(Number.POSITIVE_INFINITY) ?? Number.NaN;
      const cumulative = [...buckets.map((bound) => upTo.get(bound) as number), whole];
      const counts = cumulative.map((each, at) => each - (cumulative[at - 1] ?? 0));
      if (!counts.every((each) => Number.isSafeInteger(each) && each >= 0)) {
        return "buckets whose counts do not rise in whole numbers";
      }
      if (!Number.isFinite(sum)) {
        return "a sum that is no finite number";
      }
      changes.push({ labels, value: sum, counts });
    }
    return { name, kind: "histogram", help: this.#helpOf(name), buckets, changes };
  }

  #isExposed(name: string): boolean {
    const known = this.#names.get(name) ?? isExposedName(name);
    this.#names.set(name, known);
    return known;
  }

  #helpOf(name: string): string {
    return this.#helps.get(name) ?? this.#helps.get(name.replace(/_total$/, "")) ?? "";
  }

  /** Whether it tells when a counter, histogram or summary was made. */
  #isCreation(name: string): boolean {
    if (!name.endsWith("_created")) {
      return false;
    }
    const of = name.slice(0, -"_created".length);
    const type = this.#types.get(of) ?? this.#types.get(`${of}_total`);
    return type !== undefined && type !== "gauge";
  }

  #leaveOut(name: string, reason: string): void {
    this.#leftOut += 1;
    this.#reason ||= `${shown(name)} has ${reason}`;
  }
}

function typeOf(word: string): Type {
  switch (word) {
    case "counter":
    case "histogram":
    case "summary":
      return word;
    default:
      return "gauge";
  }
}

function isDistribution(type: Type | undefined): boolean {
  return type === "histogram" || type === "summary";
}

/** Labels by the names under which they are shown, sorted. */
class ShownLabels {
  /** The names that were looked at; undefined for those that cannot be shown. */
  readonly #names = new Map<string, string | undefined>();

  /** Names and values in turns, or why they cannot be shown. */
  of(given: Sample["labels"]): readonly string[] | string {
    if (given.length > MAX_EXPOSED_LABELS) {
      return `more than ${MAX_EXPOSED_LABELS} labels`;
    }
    const pairs: (readonly [string, string])[] = [];
    for (const [name, value] of given) {
      const own = this.#nameFor(name);
      if (own === undefined || pairs.some(([other]) => other === own)) {
        return `a label ${shown(name)}, which is not one of its own, or is there twice`;
      }
      if (!isExposedValue(value)) {
        return `a value of the label ${shown(name)} that is too long`;
      }
      // As in Prometheus, a label with an empty value is not there.
      if (value !== "") {
        pairs.push([own, value]);
      }
    }
    return pairs.sort(([one], [other]) => (one < other ? -1 : 1)).flat();
  }

  #nameFor(name: string): string | undefined {
    if (!this.#names.has(name)) {
      this.#names.set(name, labelNameFor(name));
    }
    return this.#names.get(name);
  }
}

/** The lengths make it unambiguous. */
function keyOf(labels: readonly string[]): string {
  let key = "";
  for (const text of labels) {
    key += `${text.length}:${text}`;
  }
  return key;
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
