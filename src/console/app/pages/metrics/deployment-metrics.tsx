/** What was measured of a deployment in the last hour, day or week. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { metricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { RangePicker } from "../../ui/range-picker.tsx";
import { RANGES, type RangeSearch } from "../../ui/time-range.ts";
import { DeploymentFrame } from "../deployments/frame.tsx";
import { CHARTS, Charts, metricsFor } from "./charts.tsx";
import { OwnMetrics } from "./own-metrics.tsx";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/metrics");

const METRICS = metricsFor(CHARTS.all);

export function DeploymentMetrics() {
  const search: RangeSearch = route.useSearch();
  const seconds = RANGES[search.range ?? "1h"][1];
  return (
    <DeploymentFrame title="Metrics">
      {({ name = "" }) => (
        <>
          <RangePicker search={search} standard="1h" />
          <h2 className="hidden">Charts</h2>
          <Measured deployment={name} seconds={seconds} />
          <OwnMetrics deployment={name} seconds={seconds} />
        </>
      )}
    </DeploymentFrame>
  );
}

function Measured({
  deployment,
  seconds,
}: {
  readonly deployment: string;
  readonly seconds: number;
}) {
  const organization = useOrganization();
  const { data } = useSuspenseQuery(
    metricsOf({ organization, deployment, metrics: METRICS, seconds }),
  );
  return <Charts charts={CHARTS.all} measured={data} />;
}
