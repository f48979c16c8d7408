/**
 * The writer of `/metrics`: all metrics of a node for its operators, or those
 * of one deployment. It writes the text format of Prometheus with help and
 * types; values are current, so it omits timestamps. Source: the exposition
 * formats document of Prometheus.
 */
import { escapeHelp, labelOf, writeLabels } from "./labels.ts";
import type { SampleSeries } from "./metric.ts";
import type { Metrics } from "./metrics.ts";
import { formatNumber } from "./number.ts";
import { Yielder } from "./yielder.ts";

/** Characters after which a chunk of `/metrics` is sent. */
const EXPOSITION_CHUNK_CHARACTERS = 32_768;

/** Limits the output to one deployment. */
interface Exposed {
  readonly organizationId: string;
  readonly deployment: string;
}

/** Yields the text in chunks; the event loop gets its turn between them. */
export async function* expose(
  metrics: Metrics,
  only?: Exposed,
): AsyncGenerator<string, void, undefined> {
  const yielder = new Yielder();
  let chunk = "";
  const platform = metrics.all.map(({ declaration, groups }) => ({ ...declaration, groups }));
  for (const { name, help, kind, groups } of [...platform, ...metrics.custom.families(only)]) {
    const about = help === "" ? "" : `# HELP ${name} ${escapeHelp(help)}\n`;
    let heading = `${about}# TYPE ${name} ${kind}\n`;
    for (const [organizationId, group] of groups) {
      if (only !== undefined && organizationId !== only.organizationId) {
        continue;
      }
      for (const series of inOrder([...group.samples.values()])) {
        const value = series.value();
        const shown =
          only === undefined || labelOf(series.labels, "deployment") === only.deployment;
        if (value !== undefined && shown) {
          const labels = writeLabels(series.labels);
          chunk += `${heading}${series.name}{${labels}} ${formatNumber(value)}\n`;
          heading = "";
        }
        if (chunk.length > EXPOSITION_CHUNK_CHARACTERS) {
          yield chunk;
          chunk = "";
        }
        if (yielder.spent(20)) {
          await yielder.rest();
        }
      }
    }
  }
  if (chunk !== "") {
    yield chunk;
  }
}

/** Orders a histogram's lines: buckets, sum and count of one series, then those of the next. */
function* inOrder(lists: readonly (readonly SampleSeries[])[]): Generator<SampleSeries> {
  const count = lists.at(-1)?.length ?? 0;
  for (let index = 0; index < count; index += 1) {
    for (const list of lists) {
      const each = list.length / count;
      for (let part = index * each; part < (index + 1) * each; part += 1) {
        yield list[part] as SampleSeries;
      }
    }
  }
}
