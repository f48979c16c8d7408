/** The calls and tasks of an organization, or of a deployment, over the last hour, or since its first ones. */
import { useQuery } from "@tanstack/react-query";
import { messageOf } from "../../api/errors.ts";
import type { AskedMetrics } from "../../api/metrics.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { tickText } from "../../ui/time-range.ts";
import { Charts, firstIn } from "./charts.tsx";
import { hourOf } from "./hour.ts";
import { CHARTS } from "./shown.ts";

/** The height of the charts of one deployment, which are beside what failed. */
const LOW_PX = 110;

/** The fewest points that a line is drawn of. */
const MIN_POINTS = 3;

export default function LastHour(of: Pick<AskedMetrics, "organization" | "deployment">) {
  const { data, error } = useQuery(hourOf(of));
  if (data === undefined) {
    return error ? <Notice kind="error">{messageOf(error)}</Notice> : <Loading />;
  }
  const { times = [] } = data;
  const first = firstIn(data);
  const points = times.length - first;
  const isOne = of.deployment !== undefined;
  if (points > 0 && points < MIN_POINTS) {
    return (
      <p className="secondary">The first ones came just now: charts begin after half a minute.</p>
    );
  }
  return (
    <>
      <Charts
        charts={isOne ? CHARTS.trend : CHARTS.few}
        measured={data}
        first={first}
        heightPx={isOne ? LOW_PX : undefined}
        nothing="Nothing was called in the last hour."
      />
      {first > 0 && points > 0 && (
        <p className="secondary">
          Nothing was measured before {tickText(Number(times[first]) * 1_000)}.
        </p>
      )}
    </>
  );
}
