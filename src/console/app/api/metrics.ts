/** What was measured of deployments over time. */
import { queryOptions } from "@tanstack/react-query";
import type {
  QueryMetricsRequestJson,
  QueryMetricsResponseJson,
} from "../../../../gen/tessera/v1/metrics_pb.js";
import { metrics } from "./clients.ts";

/** Interval at which charts of an hour are asked for, as nodes keep it in steps of ten seconds. */
const FINE_REFRESH_MS = 10_000;

/** Interval at which longer charts are asked for: they have steps of a minute or more. */
const COARSE_REFRESH_MS = 60_000;

/** The longest range that is kept in steps of ten seconds. */
const FINE_SECONDS = 3_600;

/** Points of a line: all that is kept of a day, and of a week. */
const MAX_POINTS = 1_440;

/** Chooses all that a service counts itself. */
const ALL_OWN = '{__name__=~".+"}';

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
    queryFn: ({ signal }) => query({ ...asked, organization, deployment }, seconds, signal),
    refetchInterval: refreshMs(seconds),
  });

type AskedOwnMetrics = Required<Omit<AskedMetrics, "metrics">>;

/** What the service of a deployment counted itself, in a range that ends now. */
export const ownMetricsOf = ({ organization, deployment, seconds }: AskedOwnMetrics) =>
  queryOptions({
    queryKey: ["metrics", organization, deployment, seconds, "own"],
    queryFn: ({ signal }) =>
      query({ organization, deployment, selectors: [ALL_OWN] }, seconds, signal),
    refetchInterval: refreshMs(seconds),
  });

/** What the newest revision of a deployment declares that it counts. */
export const declaredMetricsOf = (of: Pick<AskedOwnMetrics, "organization" | "deployment">) =>
  queryOptions({
    queryKey: ["metrics", of.organization, of.deployment, "declared"],
    queryFn: ({ signal }) => metrics.listMetrics(of, { signal }),
    refetchInterval: COARSE_REFRESH_MS,
  });

function query(
  asked: QueryMetricsRequestJson,
  seconds: number,
  signal: AbortSignal,
): Promise<QueryMetricsResponseJson> {
  const startTime = new Date(Date.now() - seconds * 1_000).toISOString();
  return metrics.queryMetrics({ ...asked, startTime, maxPoints: MAX_POINTS }, { signal });
}

const refreshMs = (seconds: number): number =>
  seconds <= FINE_SECONDS ? FINE_REFRESH_MS : COARSE_REFRESH_MS;
