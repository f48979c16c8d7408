/**
 * The sample store: the series of one organization by name, from all sources. A
 * source is always queried for a single organization and can only return that
 * one's series; ownership is never derived from a label.
 */
import type { SampleSeries } from "./metric.ts";
import type { Metrics } from "./metrics.ts";

/** All series with one name. */
interface Family {
  readonly name: string;
  /** One list per source and group; a list may grow while it is read. */
  readonly lists: readonly (readonly SampleSeries[])[];
}

/** A source of samples: this node, or other nodes. */
export interface SampleSource {
  /** The organization's lists of series, by name. */
  samplesOf(organizationId: string): Iterable<ReadonlyMap<string, readonly SampleSeries[]>>;
}

/** The samples of this node. */
export function ownSamples(metrics: Metrics): SampleSource {
  return {
    samplesOf: (organizationId) => metrics.groupsOf(organizationId).map(({ samples }) => samples),
  };
}

/** Merges the organization's series from all sources, sorted by name. */
export function familiesOf(
  organizationId: string,
  sources: readonly SampleSource[],
): readonly Family[] {
  const byName = new Map<string, (readonly SampleSeries[])[]>();
  for (const source of sources) {
    for (const samples of source.samplesOf(organizationId)) {
      for (const [name, list] of samples) {
        const lists = byName.get(name);
        if (lists === undefined) {
          byName.set(name, [list]);
        } else {
          lists.push(list);
        }
      }
    }
  }
  return [...byName]
    .map(([name, lists]) => ({ name, lists }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
