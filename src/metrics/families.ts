/**
 * The sample store: the series of an organization, by name, wherever they are
 * counted. A source is asked for one organization and answers what belongs to
 * it; no source has a way to ask for more, and whose a series is never
 * follows from a label.
 */
import type { Metrics } from "./metrics.ts";
import type { SampleSeries } from "./series.ts";

/** All series of one name. */
export interface Family {
  readonly name: string;
  /** One list per source and group; a list may grow while it is read. */
  readonly lists: readonly (readonly SampleSeries[])[];
}

/** Where samples come from: this node, or the others. */
export interface SampleSource {
  /** Lists of the organization, by name of the series. */
  samplesOf(organizationId: string): Iterable<ReadonlyMap<string, readonly SampleSeries[]>>;
}

/** What this node counts. */
export function ownSamples(metrics: Metrics): SampleSource {
  return {
    samplesOf: (organizationId) => metrics.groupsOf(organizationId).map(({ samples }) => samples),
  };
}

/** The organization's series from all sources, sorted by name. */
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
