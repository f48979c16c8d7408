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
  readonly range: MetricsRange;
}

/** The last seconds up to now, or the time from one moment up to another; without an end, up to now. */
export type MetricsRange = number | { readonly fromMs: number; readonly toMs?: number };

/** The metrics of a range. */
export const metricsOf = ({ organization, deployment = "", range, metrics: names }: AskedMetrics) =>
  queryOptions({
    queryKey: ["metrics", organization, deployment, range, names],
    queryFn: ({ signal }) => query({ metrics: names, organization, deployment }, range, signal),
    refetchInterval: refreshMs(range),
  });

type AskedOwnMetrics = Required<Omit<AskedMetrics, "metrics">>;

/** What the service of a deployment counted itself, and what libraries and servers in it did. */
export const ownMetricsOf = ({ organization, deployment, range }: AskedOwnMetrics) =>
  queryOptions({
    queryKey: ["metrics", organization, deployment, range, "own"],
    queryFn: ({ signal }) =>
      query({ organization, deployment, selectors: [ALL_OWN] }, range, signal),
    refetchInterval: refreshMs(range),
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
  range: MetricsRange,
  signal: AbortSignal,
): Promise<QueryMetricsResponseJson> {
  const times =
    typeof range === "number"
      ? { startTime: timeOf(Date.now() - range * 1_000) }
      : {
          startTime: timeOf(range.fromMs),
          ...(range.toMs !== undefined && { endTime: timeOf(range.toMs) }),
        };
  return metrics.queryMetrics({ ...asked, ...times, maxPoints: MAX_POINTS }, { signal });
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** What is between two times does not change. */
function refreshMs(range: MetricsRange): number | false {
  if (typeof range !== "number" && range.toMs !== undefined) {
    return false;
  }
  const seconds = typeof range === "number" ? range : (Date.now() - range.fromMs) / 1_000;
  return seconds <= FINE_SECONDS ? FINE_REFRESH_MS : COARSE_REFRESH_MS;
}
