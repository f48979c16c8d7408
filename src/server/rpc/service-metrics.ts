/**
 * The metrics that a deployment's service declares, read from the index of its newest artifact:
 * an LRU cache by the artifact's digest, because an index has megabytes at worst and never changes.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { MetricKind, type ServiceMetricSchema } from "../../../gen/tessera/v1/metrics_pb.js";
import type { ArtifactIndex } from "../../artifacts/index-file.ts";
import { unitOf } from "../../metrics/unit.ts";
import type { MetricManifest } from "../../protocol/manifest.ts";
import type { DeploymentRecord } from "../../storage/accounts/organizations.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";

/** Artifacts whose metrics are kept in memory: 50 metrics of 1,000 characters in each at worst. */
const MAX_CACHED_ARTIFACTS = 100;

const KINDS: { readonly [kind in MetricManifest["kind"]]: MetricKind } = {
  counter: MetricKind.COUNTER,
  gauge: MetricKind.GAUGE,
  histogram: MetricKind.HISTOGRAM,
};

type Declared = MessageInitShape<typeof ServiceMetricSchema>;

export class ServiceMetrics {
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
