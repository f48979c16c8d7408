/** What was measured of a deployment in the last hour, day or week. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { metricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { DeploymentFrame } from "../deployments/frame.tsx";
import { CHARTS, Charts, metricsFor } from "./charts.tsx";
import { OwnMetrics } from "./own-metrics.tsx";
import { type ChartRange, RANGES, type RangeSearch } from "./range.ts";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/metrics");

const METRICS = metricsFor(CHARTS.all);

const WORDS: Readonly<Record<ChartRange, string>> = { "1h": "Hour", "24h": "Day", "7d": "Week" };

export function DeploymentMetrics() {
  const { range = "1h" }: RangeSearch = route.useSearch();
  return (
    <DeploymentFrame title="Metrics">
      {({ name = "" }) => (
        <>
          <nav className="ranges" aria-label="Range">
            {(Object.keys(RANGES) as ChartRange[]).map((one) => (
              <Link
                key={one}
                to="."
                search={{ range: one }}
                replace
                aria-current={one === range ? "page" : undefined}
                activeOptions={{ exact: true, includeSearch: true }}
              >
                {WORDS[one]}
              </Link>
            ))}
          </nav>
          <h2 className="hidden">Charts</h2>
          <Measured deployment={name} range={range} />
          <OwnMetrics deployment={name} seconds={RANGES[range]} />
        </>
      )}
    </DeploymentFrame>
  );
}

function Measured({
  deployment,
  range,
}: {
  readonly deployment: string;
  readonly range: ChartRange;
}) {
  const organization = useOrganization();
  const { data } = useSuspenseQuery(
    metricsOf({ organization, deployment, metrics: METRICS, seconds: RANGES[range] }),
  );
  return <Charts charts={CHARTS.all} measured={data} />;
}
