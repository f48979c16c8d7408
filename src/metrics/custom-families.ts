/**
 * A registry of the custom metrics of all deployments on a node. Each
 * deployment has its own set, so names may repeat; metrics with one name form
 * one family only in the output.
 */
import { apart, type CustomFamily } from "./custom-family.ts";
import type { CustomMetric } from "./custom-metric.ts";
import { CustomMetrics } from "./custom-metrics.ts";
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
  add(owner: Owner, deployment: string): CustomMetrics {
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
      onDropped: (metric, events) => onDropped(owner, metric, events),
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

  #metricsOf(organizationId: string | undefined, deployment?: string): CustomMetric[] {
    return [...(this.#organizations.get(organizationId)?.deployments ?? [])]
      .filter(([, name]) => deployment === undefined || name === deployment)
      .flatMap(([custom]) => [...custom.all]);
  }
}

class Budget implements SeriesBudget {
  #left: number;

  constructor(samples: number) {
    this.#left = samples;
  }

  take(samples: number): boolean {
    if (samples > this.#left) {
      return false;
    }
    this.#left -= samples;
    return true;
  }

  giveBack(samples: number): void {
    this.#left += samples;
  }
}
