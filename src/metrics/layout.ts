/**
 * How samples look when a node shows them to others.
 *
 * The layout says which series there are: a line each, a JSON array of name
 * and labels. The samples are numbers in the same order, in base64: for each
 * series its value (8 bytes), then for each its age in milliseconds (4 bytes;
 * below zero: no sample), little-endian as every machine we run on has it.
 */
import type { Labels } from "./labels.ts";
import { Part, type SampleSeries } from "./series.ts";
import { Yielder } from "./yielder.ts";

const VALUE_BYTES = 8;
const AGE_BYTES = 4;

/** The layout's text. */
export async function writeLayout(list: readonly SampleSeries[]): Promise<string> {
  const pace = new Yielder();
  let text = "";
  for (const { name, labels } of list) {
    text += `${JSON.stringify([name, ...labels])}\n`;
    if (pace.spent(20)) {
      await pace.rest();
    }
  }
  return text;
}

/** The numbers as they are now. */
export async function writeSamples(list: readonly SampleSeries[], nowMs: number): Promise<string> {
  const pace = new Yielder();
  const { length } = list;
  const bytes = new ArrayBuffer(length * (VALUE_BYTES + AGE_BYTES));
  const values = new Float64Array(bytes, 0, length);
  const ages = new Float32Array(bytes, length * VALUE_BYTES, length);
  for (const [index, series] of list.entries()) {
    const value = series.value();
    values[index] = value ?? 0;
    ages[index] = value === undefined ? -1 : Math.max(nowMs - series.timestampMs(nowMs), 0);
    if (pace.spent(5)) {
      await pace.rest();
    }
  }
  return Buffer.from(bytes).toString("base64");
}

/** The series that another node has counted, as far as they were read. */
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

  /** Reads a layout; the samples are those of `update`. Throws when it is none. */
  static async read(layoutId: string, layout: string): Promise<ReadSamples> {
    const pace = new Yielder();
    const numbers: Numbers = {
      values: new Float64Array(),
      ages: new Float32Array(),
      takenAtMs: 0,
    };
    const samples = new Map<string, SampleSeries[]>();
    let index = 0;
    for (let at = 0; at < layout.length; index += 1) {
      const end = layout.indexOf("\n", at);
      const [name = "", ...labels] = JSON.parse(layout.slice(at, end)) as string[];
      const list = samples.get(name);
      const series = partAt(numbers, { index, name, labels });
      if (list === undefined) {
        samples.set(name, [series]);
      } else {
        list.push(series);
      }
      at = end + 1;
      if (pace.spent(50)) {
        await pace.rest();
      }
    }
    return new ReadSamples(layoutId, samples, { numbers, length: index });
  }

  /** Throws when there are not as many as the layout has. */
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
