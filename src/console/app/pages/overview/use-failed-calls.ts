/** Which deployments answered calls with errors in the last hour. */
import { useQueries } from "@tanstack/react-query";
import type { QueryMetricsResponseJson } from "../../../../gen/tessera/v1/metrics_pb.js";
import { metrics } from "./clients.ts";
import { useOrganization } from "./session.ts";

export interface FailedCalls {
  /** Of all calls, from 0 to 1. */
  readonly share: number;
}

/** Deployments that are asked about: an answer is of one, and a page of all asks for many. */
const MAX_ASKED = 30;
/** How often they are asked about again. */
const REFRESH_MS = 30_000;
/** All of an hour in steps of ten seconds: longer steps have nothing of the last minute. */
const MAX_POINTS = 360;

export function useFailedCalls(deployments: readonly string[]): ReadonlyMap<string, FailedCalls> {
  const organization = useOrganization();
  const asked = deployments.slice(0, MAX_ASKED);
  const answers = useQueries({
    queries: asked.map((deployment) => ({
      queryKey: ["metrics", organization, deployment, "failed-calls"],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        metrics.queryMetrics(
          {
            organization,
            deployment,
            metrics: ["METRIC_CALLS", "METRIC_CALL_ERRORS"],
            maxPoints: MAX_POINTS,
          },
          { signal },
        ),
      refetchInterval: REFRESH_MS,
    })),
  });
  return new Map(
    asked.flatMap((deployment, index): [string, FailedCalls][] => {
      const { data } = answers[index] ?? {};
      const share = data === undefined ? 0 : sumOf(data, "call_errors") / sumOf(data, "calls");
      return share > 0 ? [[deployment, { share }]] : [];
    }),
  );
}

/** The sum of a series, in which what is not known is text. */
const sumOf = ({ series = [] }: QueryMetricsResponseJson, name: string): number =>
  (series.find((one) => one.name === name && !one.custom)?.values ?? []).reduce<number>(
    (sum, value) => sum + (Number.isFinite(Number(value)) ? Number(value) : 0),
    0,
  );
