/**
 * What a node counts. One of these exists per node; whoever has something to
 * count is handed it, or the part that belongs to a deployment, and calls one
 * function per event. Nothing here waits, throws or asks anybody: counting an
 * answered call costs less than a microsecond (`npm run bench -- metrics`).
 *
 * `@prometheus-io/client` was measured beside it: it takes several times as
 * long per call, because labels come as objects that it checks each time; it
 * knows nothing of organizations, so that whose a series is would have to be
 * read from a label; it neither bounds the number of series nor ends those of
 * a deployment at once; and it writes all its text in one piece.
 */
import { CustomFamilies } from "./custom-families.ts";
import { type Declaration, METRICS, type MetricKey } from "./declarations.ts";
import { DeploymentMetrics, type OwnedTable } from "./deployment.ts";
import { type Group, Metric, type Owner } from "./metric.ts";

/** Series that a metric may have in one organization: sets of labels, histograms counted once. */
const MAX_SERIES = 2_000;

export interface MetricsOptions {
  /** What other nodes and people call this node; the label `node`. */
  readonly node: string;
  readonly now: () => number;
  readonly maxSeries?: number;
}

type MetricTable = {
  readonly [Key in MetricKey]: Metric<(typeof METRICS)[Key]>;
};

/** A deployment as metrics know it. */
export interface MeasuredDeployment {
  readonly organizationId: string;
  /** By which `byId` finds it. Default: not at all. */
  readonly deploymentId?: string;
  /** Names, for the labels. */
  readonly organization: string;
  readonly deployment: string;
}

/** Finds where a deployment counts; undefined for one that is not on this node. */
export type DeploymentMetricsOf = (deploymentId: string) => DeploymentMetrics | undefined;

export type TokenVerification =
  | "valid"
  | "invalid"
  | "expired"
  | "network"
  | "rate_limited"
  | "unavailable";

export class Metrics {
  readonly node: string;
  readonly #now: () => number;
  readonly #table: MetricTable;
  readonly #own: OwnedTable;
  /** What was dropped, by organization. */
  readonly #dropped = new Map<string, OwnedTable["seriesDropped"]>();
  readonly #deployments = new Map<string, CountedDeployment>();
  readonly #byId = new Map<string, DeploymentMetrics>();
  /** What the services of deployments count themselves. */
  readonly custom: CustomFamilies;

  constructor({ node, now, maxSeries = MAX_SERIES }: MetricsOptions) {
    this.node = node;
    this.#now = now;
    const create = (declaration: Declaration): Metric =>
      new Metric(declaration, {
        maxSeries,
        onDropped: (owner) => this.#seriesDropped(owner, declaration.name),
      });
    this.#table = mapValues(METRICS, create) as unknown as MetricTable;
    this.custom = new CustomFamilies({
      maxSeries,
      onDropped: (owner, metric, events) => this.#seriesDropped(owner, metric, events),
    });
    const owner: Owner = { organizationId: undefined, labels: [["node", node]] };
    this.#own = this.#ownedBy(owner, "node") as OwnedTable;
    this.#own.startTime.with()?.set(Math.round(now() / 1_000 - process.uptime()), now());
  }

  /** Every metric of the platform, in the order of the declarations. */
  get all(): readonly Metric[] {
    return Object.values(this.#table) as unknown as Metric[];
  }

  /** The metrics of one organization, by the names that Prometheus sees. */
  groupsOf(organizationId: string): Group[] {
    const own = this.all.flatMap((metric) => metric.groups.get(organizationId) ?? []);
    return [...own, ...this.custom.groupsOf(organizationId)];
  }

  /** Every organization that has series. */
  get organizations(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const { groups } of this.all) {
      for (const [organizationId, { size }] of groups) {
        if (organizationId !== undefined && size > 0) {
          found.add(organizationId);
        }
      }
    }
    return found;
  }

  /**
   * Where a deployment counts, until `end` is called on it. There is one for a
   * name: asked again before that, it is the same, and another deployment of
   * the name ends it. Ending it is for whoever hosts the deployment, when it
   * leaves the node.
   */
  deployment(measured: MeasuredDeployment): DeploymentMetrics {
    const { organizationId, organization, deployment, deploymentId } = measured;
    const key = JSON.stringify([organizationId, deployment]);
    const existing = this.#deployments.get(key);
    if (existing && existing.deploymentId === deploymentId) {
      return existing.metrics;
    }
    existing?.metrics.end();
    const owner: Owner = {
      organizationId,
      labels: [
        ["organization", organization],
        ["deployment", deployment],
        ["node", this.node],
      ],
    };
    const custom = this.custom.add(owner, deployment);
    const created = new DeploymentMetrics(this.#ownedBy(owner, "deployment"), {
      now: this.#now,
      custom,
      onEnd: () => {
        this.custom.remove(custom);
        this.#ended(key, created);
      },
    });
    this.#deployments.set(key, { deploymentId, metrics: created });
    if (deploymentId !== undefined) {
      this.#byId.set(deploymentId, created);
    }
    return created;
  }

  readonly byId: DeploymentMetricsOf = (deploymentId) => this.#byId.get(deploymentId);

  /** A token was looked at. */
  tokenVerified(verification: TokenVerification): void {
    this.#own.tokenVerifications.with(verification)?.add();
  }

  /** The database answered, or did not. */
  storageOperationFinished(finished: {
    readonly operation: string;
    readonly result: "ok" | "unavailable" | "error";
    readonly seconds: number;
  }): void {
    const { operation, result, seconds } = finished;
    this.#own.storageOperations.with(operation, result)?.observe(seconds);
  }

  /** What the process itself takes; `process.ts` looks at it. */
  processObserved(observed: {
    readonly cpuSeconds: number;
    readonly memoryBytes: number;
    /** By the quantiles of the declaration. */
    readonly delaySeconds: { readonly [quantile: string]: number };
  }): void {
    const nowMs = this.#now();
    this.#own.cpu.with()?.reach(observed.cpuSeconds);
    this.#own.memory.with()?.set(observed.memoryBytes, nowMs);
    for (const [quantile, seconds] of Object.entries(observed.delaySeconds)) {
      this.#own.eventLoopDelay.with(quantile)?.set(seconds, nowMs);
    }
  }

  #ended(key: string, metrics: DeploymentMetrics): void {
    const known = this.#deployments.get(key);
    if (known?.metrics === metrics) {
      this.#deployments.delete(key);
      if (known.deploymentId !== undefined) {
        this.#byId.delete(known.deploymentId);
      }
    }
  }

  #ownedBy(owner: Owner, of: Declaration["of"]): OwnedTable {
    const owned = Object.entries(this.#table)
      .filter(([, metric]) => metric.declaration.of === of)
      .map(([key, metric]) => [key, metric.of(owner)]);
    return Object.fromEntries(owned);
  }

  #seriesDropped({ organizationId, labels }: Owner, metric: string, events = 1): void {
    if (organizationId === undefined) {
      return;
    }
    let dropped = this.#dropped.get(organizationId);
    if (dropped === undefined) {
      const own = labels.filter(([name]) => name !== "deployment");
      dropped = this.#table.seriesDropped.of({ organizationId, labels: own });
      this.#dropped.set(organizationId, dropped);
    }
    dropped.with(metric)?.add(events);
  }
}

interface CountedDeployment {
  readonly deploymentId: string | undefined;
  readonly metrics: DeploymentMetrics;
}

function mapValues<Key extends string, Value, Result>(
  record: Readonly<Record<Key, Value>>,
  change: (value: Value) => Result,
): Record<Key, Result> {
  const entries = Object.entries<Value>(record).map(([key, value]) => [key, change(value)]);
  return Object.fromEntries(entries);
}
