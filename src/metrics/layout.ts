/**
 * The wire format in which nodes share samples: a layout and values.
 *
 * The layout lists the series: one line each, a JSON array. Its first item is the number of
 * words that the series shares with the one before, the rest are its other words: a series
 * is its name, then its labels. So the 27 buckets of a histogram do not repeat its labels.
 * The samples are numbers in the same order, in base64: first the value of each
 * series (8 bytes), then the age of each in milliseconds (4 bytes; negative: no
 * sample), little-endian like every machine that we run on.
 */
import type { Labels } from "./labels.ts";
import { Part, type SampleSeries } from "./metric.ts";
import { Yielder } from "./yielder.ts";

const VALUE_BYTES = 8;
const AGE_BYTES = 4;

/** Writes the layout. */
export async function writeLayout(list: readonly SampleSeries[]): Promise<string> {
  const yielder = new Yielder();
  let text = "";
  let before: readonly string[] = [];
  for (const { name, labels } of list) {
    const words = [name, ...labels];
    const shared = sharedWords(before, words);
    text += `${JSON.stringify([shared, ...words.slice(shared)])}\n`;
    before = words;
    if (yielder.spent(20)) {
      await yielder.rest();
    }
  }
  return text;
}

/** How many words both begin with. */
function sharedWords(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((word, at) => word !== other[at]);
  return differs === -1 ? one.length : differs;
}

/** Writes the current values. */
export async function writeSamples(list: readonly SampleSeries[], nowMs: number): Promise<string> {
  const yielder = new Yielder();
  const { length } = list;
  const bytes = new ArrayBuffer(length * (VALUE_BYTES + AGE_BYTES));
  const values = new Float64Array(bytes, 0, length);
  const ages = new Float32Array(bytes, length * VALUE_BYTES, length);
  for (const [index, series] of list.entries()) {
    const value = series.value();
    values[index] = value ?? 0;
    ages[index] = value === undefined ? -1 : Math.max(nowMs - series.timestampMs(nowMs), 0);
    if (yielder.spent(5)) {
      await yielder.rest();
    }
  }
  return Buffer.from(bytes).toString("base64");
}

/** The series of another node, decoded. */
export class ReadSamples {
  readonly layoutId: string;
  readonly samples: ReadonlyMap<string, readonly SampleSeries[]>;
  readonly #numbers: { values: Float64Array; ages: Float32Array; takenAtMs: number };
  readonly #length: number;

  private constructor(
    layoutId: string,
    samples: ReadonlyMap<string, readonly SampleSeries[]>,
    { numbers, length }: { numbers: Numbers; length: number },
  ) {
    this.layoutId = layoutId;
    this.samples = samples;
    this.#numbers = numbers;
    this.#length = length;
  }

  /** Decodes a layout; `update` sets the samples. Throws when it is malformed. */
  static async read(layoutId: string, layout: string): Promise<ReadSamples> {
    const yielder = new Yielder();
    const numbers: Numbers = {
      values: new Float64Array(),
      ages: new Float32Array(),
      takenAtMs: 0,
    };
    const samples = new Map<string, SampleSeries[]>();
    let index = 0;
    let before: readonly string[] = [];
    for (let at = 0; at < layout.length; index += 1) {
      const end = layout.indexOf("\n", at);
      const [shared, ...rest] = JSON.parse(layout.slice(at, end)) as [number, ...string[]];
      const words: readonly string[] = [...before.slice(0, shared), ...rest];
      const [name = "", ...labels] = words;
      before = words;
      const list = samples.get(name);
      const series = partAt(numbers, { index, name, labels });
      if (list === undefined) {
        samples.set(name, [series]);
      } else {
        list.push(series);
      }
      at = end + 1;
      if (yielder.spent(50)) {
        await yielder.rest();
      }
    }
    return new ReadSamples(layoutId, samples, { numbers, length: index });
  }

  /** Replaces the samples. Throws when their number differs from the layout. */
  update(samples: string, takenAtMs: number): void {
    const { buffer, byteOffset, byteLength } = Buffer.from(samples, "base64");
    const length = this.#length;
    if (byteLength !== length * (VALUE_BYTES + AGE_BYTES)) {
      throw new Error(`${byteLength} bytes are not the samples of ${length} series`);
    }
    const bytes = buffer.slice(byteOffset, byteOffset + byteLength);
    this.#numbers.values = new Float64Array(bytes, 0, length);
    this.#numbers.ages = new Float32Array(bytes, length * VALUE_BYTES, length);
    this.#numbers.takenAtMs = takenAtMs;
  }
}

interface Numbers {
  values: Float64Array;
  ages: Float32Array;
  takenAtMs: number;
}

function partAt(
  numbers: Numbers,
  {
    index,
    name,
    labels,
  }: { readonly index: number; readonly name: string; readonly labels: Labels },
): SampleSeries {
  return new Part({
    name,
    labels,
    read: () => ((numbers.ages[index] ?? -1) < 0 ? undefined : numbers.values[index]),
    timestampMs: () => numbers.takenAtMs - (numbers.ages[index] ?? 0),
  });
}
