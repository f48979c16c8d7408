/**
 * Metrics of services that have one name, as they are shown together.
 *
 * Whoever reads Prometheus' format takes `foo_count` for a part of the
 * histogram `foo`, and refuses a metric `foo_count` after it. Within a service
 * such names are refused; of two services that do not know of each other
 * neither is wrong, so their metrics are shown without a type, each name by
 * itself.
 */
import type { Group } from "./metric.ts";

export interface CustomFamily {
  readonly name: string;
  readonly help: string;
  /** `untyped` when deployments declare different ones under the name, or that of a part. */
  readonly kind: "counter" | "gauge" | "histogram" | "untyped";
  readonly groups: readonly (readonly [organizationId: string | undefined, group: Group])[];
}

/** Of a histogram, besides its name. */
const PARTS = ["_bucket", "_sum", "_count"];

/** The same families, of which those that share a name with another's part are taken apart. */
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

/** Names of what is a histogram for some only, or has parts with names of others, and these. */
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

/** A family for each name that its samples have. */
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
