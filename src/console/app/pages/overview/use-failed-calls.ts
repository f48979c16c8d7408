/** Of the deployments that answered calls with errors in the last hour, the share of those calls. */
import { useQueries } from "@tanstack/react-query";
import type { QueryMetricsResponseJson } from "../../../../../gen/tessera/v1/metrics_pb.js";
import { metrics } from "../../api/clients.ts";
import { useOrganization } from "../../api/session.ts";
import { numbersOf } from "../../ui/line.ts";

/** Deployments that are asked about: an answer is of one, and a page of all asks for many. */
const MAX_ASKED = 30;
/** How often they are asked about again. */
const REFRESH_MS = 30_000;
/** All of an hour in steps of ten seconds: longer steps have nothing of the last minute. */
const MAX_POINTS = 360;

/** By the name of the deployment, from 0 to 1; those without an error are left out. */
export function useFailedCalls(deployments: readonly string[]): ReadonlyMap<string, number> {
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
    asked.flatMap((deployment, index): [string, number][] => {
      const { data } = answers[index] ?? {};
      const share = data === undefined ? 0 : sumOf(data, "call_errors") / sumOf(data, "calls");
      return share > 0 ? [[deployment, share]] : [];
    }),
  );
}

/** The sum of a series, of what is known. */
const sumOf = ({ series = [] }: QueryMetricsResponseJson, name: string): number =>
  numbersOf(series.find((one) => one.name === name && !one.custom)?.values).reduce<number>(
    (sum, value) => sum + (value ?? 0),
    0,
  );
