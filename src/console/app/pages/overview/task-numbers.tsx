/** The tasks of an organization in numbers: now, and in the last hour. */
import type {
  TaskPercentilesJson,
  TaskStatsJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { durationMs } from "../../api/task-stats.ts";
import { duration } from "../../ui/duration.ts";

export function TaskNumbers({ stats }: { readonly stats: TaskStatsJson }) {
  const { queued = 0, running = 0, oldestQueuedAge, finishedPerMinute = 0 } = stats;
  const { succeeded = 0, failed = 0, cancelled = 0, queueTime, runTime } = stats;
  const oldest =
    oldestQueuedAge === undefined
      ? ""
      : `, the oldest for ${duration(durationMs(oldestQueuedAge))}`;
  const facts = [
    ["Waiting", `${queued}${oldest}`],
    ["Running", `${running}`],
    ["Ended", `${succeeded} succeeded, ${failed} failed, ${cancelled} cancelled`],
    ["Throughput", `${Number(Number(finishedPerMinute).toPrecision(3))} per minute`],
    ["Time in the queue", percentiles(queueTime)],
    ["Run time", percentiles(runTime)],
  ] as const;
  return (
    <dl className="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function percentiles(found: TaskPercentilesJson | undefined): string {
  const { p50, p95, p99 } = found ?? {};
  if (p50 === undefined || p95 === undefined || p99 === undefined) {
    return "none in the last hour";
  }
  const [half, most, nearlyAll] = [p50, p95, p99].map((one) => duration(durationMs(one)));
  return `half within ${half}, 95 % within ${most}, 99 % within ${nearlyAll}`;
}
