/**
 * A registry of the custom metrics of all deployments on a node. Each
 * deployment has its own set, so names may repeat; metrics with one name form
 * one family only in the output.
 */
import type { CustomMetric } from "./custom-metric.ts";
import { CustomMetrics } from "./custom-metrics.ts";
import { MAX_EXPOSED_SERIES } from "./exposed-metrics.ts";
import type { Group, Owner, SeriesBudget } from "./metric.ts";

/**
 * The limit of custom samples per organization and node, counted as Prometheus
 * counts series: each bucket of a histogram is one. Without it, one deployment
 * could declare fifty histograms with fifty buckets and fill the node's memory.
 */
export const MAX_ORGANIZATION_SAMPLES = 20_000;

interface CustomFamiliesOptions {
  readonly maxSeries: number;
  readonly onDropped: (owner: Owner, metric: string, events: number) => void;
}

/** What `/metrics` says of one deployment. */
interface CustomListener {
  /** What programs of a worker expose could not be read. */
  readonly onUnread: (times: number) => void;
}

/** A metric that a service declares, or that one of its programs exposes. */
type Counted = Pick<CustomMetric, "groups"> & {
  readonly declaration: Pick<CustomMetric["declaration"], "name" | "help" | "kind">;
};

interface Organization {
  readonly budget: SeriesBudget;
  /** The custom metrics with the deployment's name. */
  readonly deployments: Map<CustomMetrics, string>;
}

export class CustomFamilies {
  readonly #options: CustomFamiliesOptions;
  readonly #organizations = new Map<string | undefined, Organization>();

  constructor(options: CustomFamiliesOptions) {
    this.#options = options;
  }

  /** Creates the custom metrics of a deployment, until `remove`. */
  add(owner: Owner, deployment: string, { onUnread }: CustomListener): CustomMetrics {
    const { maxSeries, onDropped } = this.#options;
    const { organizationId } = owner;
    let organization = this.#organizations.get(organizationId);
    if (organization === undefined) {
      organization = { budget: new Budget(MAX_ORGANIZATION_SAMPLES), deployments: new Map() };
      this.#organizations.set(organizationId, organization);
    }
    const custom = new CustomMetrics({
      owner,
      maxSeries,
      budget: organization.budget,
      exposedBudget: new Budget(MAX_EXPOSED_SERIES, organization.budget),
      onDropped: (metric, events) => onDropped(owner, metric, events),
      onUnread,
    });
    organization.deployments.set(custom, deployment);
    return custom;
  }

  remove(custom: CustomMetrics): void {
    for (const [organizationId, { deployments }] of this.#organizations) {
      if (deployments.delete(custom) && deployments.size === 0) {
        this.#organizations.delete(organizationId);
      }
    }
  }

  groupsOf(organizationId: string): Group[] {
    return this.#metricsOf(organizationId).flatMap(({ groups }) => [...groups.values()]);
  }

  /** Families by name, of all deployments or of one, in the order of declaration. */
  families(only?: {
    readonly organizationId: string;
    readonly deployment: string;
  }): Iterable<CustomFamily> {
    const byName = new Map<string, CustomFamily>();
    const metrics = only
      ? this.#metricsOf(only.organizationId, only.deployment)
      : [...this.#organizations.keys()].flatMap((id) => this.#metricsOf(id));
    for (const { declaration, groups } of metrics) {
      const { name, help, kind } = declaration;
      const found = byName.get(name) ?? { name, help, kind, groups: [] };
      byName.set(name, {
        ...found,
        kind: found.kind === kind ? kind : "untyped",
        groups: [...found.groups, ...groups],
      });
    }
    return apart(byName);
  }

  #metricsOf(organizationId: string | undefined, deployment?: string): Counted[] {
    return [...(this.#organizations.get(organizationId)?.deployments ?? [])]
      .filter(([, name]) => deployment === undefined || name === deployment)
      .flatMap(([custom]) => [...custom.all, ...custom.exposed]);
  }
}

class Budget implements SeriesBudget {
  #left: number;
  readonly #within: SeriesBudget | undefined;

  /** Samples, which are taken of another budget, too. */
  constructor(samples: number, within?: SeriesBudget) {
    this.#left = samples;
    this.#within = within;
  }

  take(samples: number): boolean {
    if (samples > this.#left || this.#within?.take(samples) === false) {
      return false;
    }
    this.#left -= samples;
    return true;
  }

  giveBack(samples: number): void {
    this.#left += samples;
    this.#within?.giveBack(samples);
  }
}

/**
 * Merges custom metrics with the same name into families for output.
 *
 * Parsers of Prometheus' format read `foo_count` as a part of the histogram
 * `foo`, and reject a metric `foo_count` beside it. Within one service such
 * names are refused. Two services that do not know of each other are both
 * right, so their metrics are shown untyped, one family per name.
 */
interface CustomFamily {
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
function apart(families: ReadonlyMap<string, CustomFamily>): Iterable<CustomFamily> {
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
