/** The calls and tasks of an organization in the last hour, or since its first ones. */
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
  const first = data === undefined ? 0 : firstIn(data);
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">Calls and tasks{data && `, last ${spanOf(data, first)}`}</h2>
      {data !== undefined ? (
        <Charts charts={CHARTS.few} measured={data} first={first} />
      ) : error ? (
        <Notice kind="error">{messageOf(error)}</Notice>
      ) : (
        <Loading />
      )}
    </section>
  );
}

/** How long charts that begin with the point `first` are, such as `4 min`; `hour` where they have all. */
function spanOf({ times = [], step = "0s" }: QueryMetricsResponseJson, first: number): string {
  const minutes = Math.ceil(((times.length - first) * Number.parseFloat(step)) / 60);
  return first === 0 ? "hour" : duration(minutes * 60_000);
}
