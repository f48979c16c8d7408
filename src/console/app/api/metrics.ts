/** What was measured of deployments over time. */
import { queryOptions } from "@tanstack/react-query";
import type {
  QueryMetricsRequestJson,
  QueryMetricsResponseJson,
} from "../../../../gen/tessera/v1/metrics_pb.js";
import { metrics } from "./clients.ts";

/** Nodes measure every 10 s. */
const REFRESH_MS = 10_000;

/** Points of a chart: more than its width shows nobody. */
const MAX_POINTS = 360;

export interface AskedMetrics {
  readonly organization: string;
  /** All deployments of the organization together without one. */
  readonly deployment?: string;
  readonly metrics: NonNullable<QueryMetricsRequestJson["metrics"]>;
  /** How far back, in seconds. */
  readonly seconds: number;
}

/** The metrics of a range that ends now. */
export const metricsOf = ({ organization, deployment = "", seconds, ...asked }: AskedMetrics) =>
  queryOptions({
    queryKey: ["metrics", organization, deployment, seconds, asked.metrics],
    queryFn: ({ signal }): Promise<QueryMetricsResponseJson> => {
      const startTime = new Date(Date.now() - seconds * 1_000).toISOString();
      const request = { ...asked, organization, deployment, startTime, maxPoints: MAX_POINTS };
      return metrics.queryMetrics(request, { signal });
    },
    refetchInterval: REFRESH_MS,
  });
