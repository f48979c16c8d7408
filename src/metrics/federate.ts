/**
 * The writer of `/federate`: the newest sample of each selected series in
 * Prometheus' text format. Source: web/federate.go and expfmt/text_create.go of
 * Prometheus.
 *
 * Families are sorted by name, untyped and without help. Each series appears
 * once, even when several selectors match it, with the timestamp of its sample;
 * samples older than five minutes and ended series are left out. Missing labels
 * are added from `externalLabels`, and `instance=""`, so that a scrape with
 * `honor_labels` does not add its own.
 *
 * The text is written in chunks. The event loop gets its turn between them and
 * during long searches for series.
 */
import type { AddedLabels } from "./external-labels.ts";
import { familiesOf, type SampleSource } from "./families.ts";
import type { SampleSeries } from "./metric.ts";
import { formatNumber } from "./number.ts";
import { type Choice, choose } from "./selector/choose.ts";
import type { Selector } from "./selector/parse.ts";
import { Yielder } from "./yielder.ts";

/** Age beyond which a sample is left out of `/federate`. */
const FEDERATION_LOOKBACK_MS = 5 * 60_000;

/** The media type of the text format. */
export const TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8";

/** Characters after which a chunk of `/federate` is sent. */
const FEDERATION_CHUNK_CHARACTERS = 32_768;

export interface FederateOptions {
  readonly organizationId: string;
  readonly selectors: readonly Selector[];
  readonly sources: readonly SampleSource[];
  readonly nowMs: number;
  /** Labels added to every series that does not have them. */
  readonly added: AddedLabels;
}

/** Yields the text in chunks. */
export async function* federate(options: FederateOptions): AsyncGenerator<string, void, undefined> {
  const { organizationId, selectors, sources, nowMs, added } = options;
  const yielder = new Yielder();
  const text = new Text(added, nowMs);
  for (const { name, lists } of familiesOf(organizationId, sources)) {
    const choice = choose(selectors, name);
    text.begin(name);
    for (const list of choice === undefined ? [] : lists) {
      // Series added during the response belong to the next one.
      for (let index = 0, { length } = list; index < length; index += 1) {
        text.add(list[index] as SampleSeries, choice as Choice);
        if (text.length > FEDERATION_CHUNK_CHARACTERS) {
          yield text.take();
        }
        if (yielder.spent(5 + (choice as Choice).cost)) {
          await yielder.rest();
        }
      }
    }
  }
  if (text.length > 0) {
    yield text.take();
  }
}

/** The buffer of lines that have not been sent. */
class Text {
  /** Approximate number of buffered characters. */
  length = 0;
  readonly #added: AddedLabels;
  readonly #nowMs: number;
  #parts: string[] = [];
  /** The line before the first series of a family. */
  #heading = "";
  /**
   * A cache of the last timestamp's text: most samples share one time, and
   * formatting it takes longer than the rest of a line.
   */
  #timestampMs = Number.NaN;
  #lineEnd = "";

  constructor(added: AddedLabels, nowMs: number) {
    this.#added = added;
    this.#nowMs = nowMs;
  }

  begin(name: string): void {
    this.#heading = `# TYPE ${name} untyped\n`;
  }

  /** Adds the line of a series, if it is chosen and has a sample. */
  add(series: SampleSeries, choice: Choice): void {
    const value = series.value();
    const timestampMs = series.timestampMs(this.#nowMs);
    if (
      value === undefined ||
      timestampMs < this.#nowMs - FEDERATION_LOOKBACK_MS ||
      !choice.has(series.labels)
    ) {
      return;
    }
    if (this.#heading !== "") {
      this.#parts.push(this.#heading);
      this.#heading = "";
    }
    if (timestampMs !== this.#timestampMs) {
      this.#timestampMs = timestampMs;
      this.#lineEnd = ` ${timestampMs}\n`;
    }
    const begin = series.begin(this.#added);
    this.#parts.push(begin, formatNumber(value), this.#lineEnd);
    this.length += begin.length + this.#lineEnd.length + 4;
  }

  take(): string {
    const text = this.#parts.join("");
    this.#parts = [];
    this.length = 0;
    return text;
  }
}
