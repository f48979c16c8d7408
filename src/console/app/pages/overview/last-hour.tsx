/** What all deployments of an organization did in the last hour. */
import { useQuery } from "@tanstack/react-query";
import { messageOf } from "../../api/errors.ts";
import { metricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { RANGES } from "../../ui/time-range.ts";
import { CHARTS, Charts, metricsFor } from "../metrics/charts.tsx";

const METRICS = metricsFor(CHARTS.few);

export default function LastHour() {
  const organization = useOrganization();
  const { data, error } = useQuery(
    metricsOf({ organization, metrics: METRICS, range: RANGES["1h"][1] }),
  );
  if (data === undefined) {
    return error ? <Notice kind="error">{messageOf(error)}</Notice> : <Loading />;
  }
  return <Charts charts={CHARTS.few} measured={data} isCut />;
}
