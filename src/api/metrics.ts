/** MetricsService: what was measured of deployments over time, and what services count themselves. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  Metric,
  MetricKind,
  type MetricsService,
  type ServiceMetricSchema,
  Statistic,
} from "../../gen/tessera/v1/metrics_pb.js";
import type { ArtifactIndex } from "../artifacts/index-file.ts";
import type { HistorySeries } from "../metrics/history/history.ts";
import type { KeptHistory } from "../metrics/history/kept.ts";
import { MEASURE_NAMES, type MeasureName } from "../metrics/history/measures.ts";
import { RangeFault } from "../metrics/history/range.ts";
import { MatchError } from "../metrics/selector/error.ts";
import { parseSelectors } from "../metrics/selector/list.ts";
import { unitOf } from "../metrics/unit.ts";
import type { MetricManifest } from "../protocol/manifest.ts";
import { memberOf } from "../server/rpc/engine/caller.ts";
import type { DeploymentRecord, Organizations } from "../storage/accounts/organizations.ts";
import type { HostingStorage } from "../storage/hosting/hosting.ts";
import { findDeployment } from "./deployment/refusals.ts";
import { invalidField } from "./violations.ts";

/** Artifacts whose metrics are kept in memory: 50 metrics of 1,000 characters in each at worst. */
const MAX_CACHED_ARTIFACTS = 100;

interface MetricsServiceOptions {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<HostingStorage, "getHosted" | "getIndex">;
  readonly history: Pick<KeptHistory, "read">;
  readonly now: () => number;
}

const STATISTICS: { readonly [statistic in HistorySeries["statistic"]]: Statistic } = {
  rate: Statistic.RATE,
  average: Statistic.AVERAGE,
  p50: Statistic.P50,
  p95: Statistic.P95,
  p99: Statistic.P99,
};

export function metricsService({
  accounts,
  hosting,
  history,
  now,
}: MetricsServiceOptions): Partial<ServiceImpl<typeof MetricsService>> {
  const serviceMetrics = new ServiceMetrics(hosting);
  return {
    async listMetrics({ deployment: name }, ctx) {
      const found = await findDeployment(accounts, memberOf(ctx), name);
      return { metrics: [...(await serviceMetrics.of(found))] };
    },

    async queryMetrics(req, ctx) {
      const member = memberOf(ctx);
      const { organizationId } = member;
      const { deployment: name, selectors: texts, startTime, endTime, maxPoints } = req;
      if (name === "" && texts.length > 0) {
        throw invalidField(
          "selectors",
          "need a deployment: the metrics of one service are not those of another",
        );
      }
      const deployment = name === "" ? undefined : await findDeployment(accounts, member, name);
      const all = req.metrics.length === 0 && texts.length === 0;
      try {
        const answer = await history.read({
          organizationId,
          deployment,
          measures: all ? MEASURE_NAMES : [...new Set(req.metrics)].map(measureOf),
          selectors: await parseSelectors(texts),
          range: {
            startMs: startTime && timestampMs(startTime),
            endMs: endTime && timestampMs(endTime),
            maxPoints,
            nowMs: now(),
          },
          signal: ctx.signal,
        });
        const { fromMs, stepMs, points, series, truncated, leftOut } = answer;
        return {
          times: Array.from({ length: points }, (_, at) => (fromMs + at * stepMs) / 1_000),
          step: { seconds: BigInt(stepMs / 1_000), nanos: 0 },
          series: series.map((one) => ({
            ...one,
            values: [...one.values],
            statistic: STATISTICS[one.statistic],
          })),
          truncated,
          leftOut: Object.fromEntries(leftOut),
        };
      } catch (err) {
        throw problemOf(err);
      }
    },
  };
}

function problemOf(err: unknown): unknown {
  if (err instanceof RangeFault) {
    return invalidField(err.field, err.message);
  }
  if (err instanceof MatchError) {
    return invalidField("selectors", err.message);
  }
  return err;
}

/** The enum's names are those of the measures; a test compares the lists. */
function measureOf(metric: Metric): MeasureName {
  return (Metric[metric] as string).toLowerCase() as MeasureName;
}

const KINDS: { readonly [kind in MetricManifest["kind"]]: MetricKind } = {
  counter: MetricKind.COUNTER,
  gauge: MetricKind.GAUGE,
  histogram: MetricKind.HISTOGRAM,
};

type Declared = MessageInitShape<typeof ServiceMetricSchema>;

/**
 * The metrics that a deployment's service declares, read from the index of its newest artifact:
 * an LRU cache by the artifact's digest, because an index has megabytes at worst and never changes.
 */
class ServiceMetrics {
  readonly #hosting: Pick<HostingStorage, "getHosted" | "getIndex">;
  /** By digest; the most recently used last. */
  readonly #known = new Map<string, readonly Declared[]>();

  constructor(hosting: Pick<HostingStorage, "getHosted" | "getIndex">) {
    this.#hosting = hosting;
  }

  /** In the order of their declaration; empty before the first revision. */
  async of(deployment: Pick<DeploymentRecord, "deploymentId">): Promise<readonly Declared[]> {
    const { deploymentId } = deployment;
    const { digest, organizationId } = (await this.#hosting.getHosted({ deploymentId })) ?? {};
    if (digest === undefined || organizationId === undefined) {
      return [];
    }
    const metrics = this.#known.get(digest) ?? (await this.#read({ organizationId, digest }));
    if (metrics === undefined) {
      return [];
    }
    this.#known.delete(digest);
    this.#known.set(digest, metrics);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_CACHED_ARTIFACTS) {
        break;
      }
      this.#known.delete(oldest);
    }
    return metrics;
  }

  /** Undefined when the deployment, and its artifact, are gone by now. */
  async #read(
    artifact: Parameters<HostingStorage["getIndex"]>[0],
  ): Promise<readonly Declared[] | undefined> {
    const text = await this.#hosting.getIndex(artifact);
    if (text === undefined) {
      return undefined;
    }
    // It was verified before it was stored.
    const { service } = JSON.parse(text) as ArtifactIndex;
    return (service.metrics ?? []).map(({ name, kind, help, labels }) => ({
      name,
      kind: KINDS[kind],
      help,
      unit: unitOf(name),
      labels: kind === "gauge" ? [...labels] : ["endpoint", ...labels],
    }));
  }
}
