/** Series for tests, as a source of samples and as a page that Prometheus scrapes. */
import type { SampleSource } from "../../src/metrics/families.ts";
import { toLabels, writeLabels } from "../../src/metrics/labels.ts";
import { Part, type SampleSeries } from "../../src/metrics/metric.ts";
import { formatNumber } from "../../src/metrics/number.ts";

export interface GivenSeries {
  readonly name: string;
  readonly labels: { readonly [name: string]: string };
  readonly value: number;
  /** Default: now. */
  readonly timestampMs?: number;
}

export function series(
  name: string,
  labels: { readonly [name: string]: string } = {},
  value = 1,
): GivenSeries {
  return { name, labels, value };
}

/** A source that has these for one organization. */
export function sourceOf(organizationId: string, given: readonly GivenSeries[]): SampleSource {
  const samples = new Map<string, SampleSeries[]>();
  for (const { name, labels, value, timestampMs } of given) {
    const part = new Part({
      name,
      labels: toLabels(Object.entries(labels)),
      read: () => value,
      ...(timestampMs !== undefined && { timestampMs: () => timestampMs }),
    });
    samples.set(name, [...(samples.get(name) ?? []), part]);
  }
  return { samplesOf: (asked) => (asked === organizationId ? [samples] : []) };
}

/** A page that has these; `job` and `instance` are empty where a series has none. */
export function pageOf(given: readonly GivenSeries[]): string {
  return given
    .map(({ name, labels, value }) => {
      const pairs = Object.entries({ job: "", instance: "", ...labels });
      const text = pairs.map(([label, text]) => writeLabels([label, text])).join(",");
      return `${name}{${text}} ${formatNumber(value)}\n`;
    })
    .join("");
}

/** All of it in one text. */
export async function whole(chunks: AsyncIterable<string | Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) {
    parts.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  }
  return Buffer.concat(parts).toString();
}

/** The lines of samples, without their timestamps, sorted. */
export function sampleLines(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.replace(/ \d+$/, ""))
    .sort();
}
