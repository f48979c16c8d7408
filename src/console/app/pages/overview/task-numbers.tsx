/** The tasks of an organization in numbers: now, and in the last hour. */
import type {
  TaskPercentilesJson,
  TaskStatsJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { durationMs } from "../../api/task-stats.ts";
import { duration } from "../../ui/duration.ts";
import "./task-numbers.css";

interface TaskNumber {
  readonly name: string;
  readonly value: string;
  /** What else is known of it, in small letters. */
  readonly more?: string | undefined;
  readonly isBad?: boolean;
}

export function TaskNumbers({ stats }: { readonly stats: TaskStatsJson }) {
  const { queued = 0, running = 0, oldestQueuedAge, finishedPerMinute = 0 } = stats;
  const { succeeded = 0, failed = 0, cancelled = 0, queueTime, runTime } = stats;
  const numbers: readonly TaskNumber[] = [
    {
      name: "Waiting",
      value: counts.format(queued),
      more: oldestQueuedAge && `the oldest for ${duration(durationMs(oldestQueuedAge))}`,
    },
    { name: "Running", value: counts.format(running) },
    {
      name: "Succeeded",
      value: counts.format(succeeded),
      more: `${rates.format(Number(finishedPerMinute))} ended per minute`,
    },
    {
      name: "Failed",
      value: counts.format(failed),
      more: cancelled > 0 ? `${counts.format(cancelled)} cancelled` : undefined,
      isBad: failed > 0,
    },
    { name: "Time in the queue", ...percentiles(queueTime) },
    { name: "Run time", ...percentiles(runTime) },
  ];
  return (
    <dl className="task-numbers">
      {numbers.map(({ name, value, more, isBad = false }) => (
        <div key={name} className="card">
          <dt>{name}</dt>
          <dd className={isBad ? "task-number bad" : "task-number"}>{value}</dd>
          {more && <dd className="secondary">{more}</dd>}
        </div>
      ))}
    </dl>
  );
}

const counts = new Intl.NumberFormat("en");
const rates = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });

/** The median, with what 95 and 99 of a hundred tasks took at most. */
function percentiles(found: TaskPercentilesJson | undefined): Omit<TaskNumber, "name"> {
  const { p50, p95, p99 } = found ?? {};
  if (p50 === undefined || p95 === undefined || p99 === undefined) {
    return { value: "none yet" };
  }
  const [half = "", most, nearlyAll] = [p50, p95, p99].map((one) => duration(durationMs(one)));
  return { value: half, more: `95 % within ${most}, 99 % within ${nearlyAll}` };
}
