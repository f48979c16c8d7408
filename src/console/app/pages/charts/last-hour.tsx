/** The calls and tasks of an organization, or of a deployment, in the last hour, or since its first ones. */
import { useQuery } from "@tanstack/react-query";
import type { QueryMetricsResponseJson } from "../../../../../gen/tessera/v1/metrics_pb.js";
import { messageOf } from "../../api/errors.ts";
import type { AskedMetrics } from "../../api/metrics.ts";
import { duration } from "../../ui/duration.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Charts, firstIn } from "./charts.tsx";
import { hourOf } from "./hour.ts";
import { CHARTS } from "./shown.ts";

/** The height of the charts of one deployment, which are beside what failed. */
const LOW_PX = 110;

/** The fewest points that a line is drawn of. */
const MIN_POINTS = 3;

export default function LastHour(of: Pick<AskedMetrics, "organization" | "deployment">) {
  const { data, error } = useQuery(hourOf(of));
  const first = data === undefined ? 0 : firstIn(data);
  const points = (data?.times?.length ?? 0) - first;
  const isOne = of.deployment !== undefined;
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">
        Calls and tasks{points >= MIN_POINTS && data && `, last ${spanOf(data, first)}`}
      </h2>
      {data === undefined ? (
        error ? (
          <Notice kind="error">{messageOf(error)}</Notice>
        ) : (
          <Loading />
        )
      ) : points > 0 && points < MIN_POINTS ? (
        <p className="secondary">The first ones came just now: charts begin after half a minute.</p>
      ) : (
        <Charts
          charts={isOne ? CHARTS.trend : CHARTS.few}
          measured={data}
          first={first}
          heightPx={isOne ? LOW_PX : undefined}
          nothing="Nothing was called in the last hour."
        />
      )}
    </section>
  );
}

/** How long charts that begin with the point `first` are, such as `4 min`; `hour` where they have all. */
function spanOf({ times = [], step = "0s" }: QueryMetricsResponseJson, first: number): string {
  const minutes = Math.ceil(((times.length - first) * Number.parseFloat(step)) / 60);
  return first === 0 ? "hour" : duration(minutes * 60_000);
}
