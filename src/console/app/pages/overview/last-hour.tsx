/** What all deployments of an organization did in the last hour, or since they began. */
import { useQuery } from "@tanstack/react-query";
import type { QueryMetricsResponseJson } from "../../../../../gen/tessera/v1/metrics_pb.js";
import { messageOf } from "../../api/errors.ts";
import { metricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { duration } from "../../ui/duration.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { RANGES } from "../../ui/time-range.ts";
import { CHARTS, Charts, firstIn, metricsFor } from "../metrics/charts.tsx";

const METRICS = metricsFor(CHARTS.few);

export default function LastHour() {
  const organization = useOrganization();
  const { data, error } = useQuery(
    metricsOf({ organization, metrics: METRICS, range: RANGES["1h"][1] }),
  );
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">Calls and tasks{data && `, last ${spanOf(data)}`}</h2>
      {data !== undefined ? (
        <Charts charts={CHARTS.few} measured={data} first={firstIn(data)} />
      ) : error ? (
        <Notice kind="error">{messageOf(error)}</Notice>
      ) : (
        <Loading />
      )}
    </section>
  );
}

/** The time that the charts have, in minutes, such as `4 min`; `hour` where that is all. */
function spanOf(measured: QueryMetricsResponseJson): string {
  const first = firstIn(measured);
  const { times = [], step = "0s" } = measured;
  const minutes = Math.ceil(((times.length - first) * Number.parseFloat(step)) / 60);
  return first === 0 ? "hour" : duration(minutes * 60_000);
}
