/**
 * Merges custom metrics with the same name into families for output.
 *
 * Parsers of Prometheus' format read `foo_count` as a part of the histogram
 * `foo`, and reject a metric `foo_count` beside it. Within one service such
 * names are refused. Two services that do not know of each other are both
 * right, so their metrics are shown untyped, one family per name.
 */
import type { Group } from "./metric.ts";

export interface CustomFamily {
  readonly name: string;
  readonly help: string;
  /**
   * `untyped` when deployments declare different kinds under the name, or when
   * it is part of another's histogram.
   */
  readonly kind: "counter" | "gauge" | "histogram" | "untyped";
  readonly groups: readonly (readonly [organizationId: string | undefined, group: Group])[];
}

/** Suffixes of a histogram's samples. */
const PARTS = ["_bucket", "_sum", "_count"];

/** Splits the families whose name collides with a part of another one. */
export function apart(families: ReadonlyMap<string, CustomFamily>): Iterable<CustomFamily> {
  const shared = sharedNames(families);
  if (shared.size === 0) {
    return families.values();
  }
  const shown = new Map<string, CustomFamily>();
  for (const family of families.values()) {
    for (const one of shared.has(family.name) ? byName(family) : [family]) {
      const groups = [...(shown.get(one.name)?.groups ?? []), ...one.groups];
      shown.set(one.name, { ...one, ...shown.get(one.name), groups });
    }
  }
  return shown.values();
}

/**
 * Finds the names that collide: histograms of some deployments only, and
 * histograms whose parts have names of other metrics, with those metrics.
 */
function sharedNames(families: ReadonlyMap<string, CustomFamily>): ReadonlySet<string> {
  const shared = new Set<string>();
  for (const { name, kind } of families.values()) {
    const parts = PARTS.map((part) => name + part).filter((part) => families.has(part));
    if (kind === "untyped" || (kind === "histogram" && parts.length > 0)) {
      shared.add(name);
      for (const part of parts) {
        shared.add(part);
      }
    }
  }
  return shared;
}

/** Yields one untyped family per sample name. */
function byName({ help, groups }: CustomFamily): Iterable<CustomFamily> {
  const families = new Map<string, CustomFamily>();
  for (const [organizationId, { size, samples }] of groups) {
    for (const [name, list] of samples) {
      const one = [organizationId, { size, samples: new Map([[name, list]]) }] as const;
      const before = families.get(name)?.groups ?? [];
      families.set(name, { name, help, kind: "untyped", groups: [...before, one] });
    }
  }
  return families.values();
}
