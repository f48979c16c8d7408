/** How a deployment did in the last hour, in numbers. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { QueryMetricsResponseJson } from "../../../../../gen/tessera/v1/metrics_pb.js";
import { metricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { durationMs, statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { newestQueuedOf } from "../../api/tasks.ts";
import { duration } from "../../ui/duration.ts";
import { highest, numbersOf, totalOf } from "../../ui/line.ts";
import { Notice } from "../../ui/notice.tsx";
import { Numbers } from "../../ui/numbers.tsx";
import { count, percent, seconds } from "../../ui/quantity.ts";
import { RANGES } from "../../ui/time-range.ts";
import { whyQueued } from "../tasks/state.tsx";

const METRICS = ["METRIC_CALLS", "METRIC_CALL_ERRORS", "METRIC_CALL_SECONDS"] as const;

export function Health({ name }: { readonly name: string }) {
  const organization = useOrganization();
  const { data: measured } = useQuery(
    metricsOf({ organization, deployment: name, metrics: [...METRICS], range: RANGES["1h"][1] }),
  );
  const { data: stats } = useQuery(taskStatsOf(organization));
  const {
    queued = 0,
    running = 0,
    failed = 0,
    oldestQueuedAge,
  } = stats ? statsIn(stats, name) : {};
  const { calls, errors, p95 } = summaryOf(measured);
  const part = calls > 0 ? errors / calls : 0;
  return (
    <>
      <Numbers
        label="The last hour"
        numbers={[
          { name: "Calls (1 h)", value: measured ? count(calls) : "–" },
          {
            name: "Errors (1 h)",
            value: measured ? count(errors) : "–",
            isBad: errors > 0,
            ...(errors > 0 && { note: `${percent(part)} of calls` }),
          },
          { name: "Peak p95 (1 h)", value: calls > 0 ? p95 : "none" },
          {
            name: "Queued",
            value: stats ? count(queued) : "–",
            note:
              oldestQueuedAge === undefined
                ? `${running} running`
                : `the oldest for ${duration(durationMs(oldestQueuedAge))}`,
          },
          {
            name: "Failed tasks (1 h)",
            isBad: failed > 0,
            value:
              failed > 0 ? (
                <Link
                  to="/o/$organization/deployments/$deployment/tasks"
                  params={{ organization, deployment: name }}
                  search={{ status: "failure", since: "1h" }}
                >
                  {count(failed)}
                </Link>
              ) : stats ? (
                "0"
              ) : (
                "–"
              ),
          },
        ]}
      />
      {queued > 0 && <WhyQueued name={name} />}
    </>
  );
}

/** Why the newest task waits that could start. */
function WhyQueued({ name }: { readonly name: string }) {
  const organization = useOrganization();
  const { data: task } = useQuery(newestQueuedOf(organization, name));
  const isMoving = task?.queuedReason?.code === "QUEUED_CODE_STARTS_NOW";
  const why = task && !isMoving ? whyQueued(task) : "";
  return (
    why !== "" && (
      <Notice>
        Tasks are queued. Why the{" "}
        <Link
          to="/o/$organization/deployments/$deployment/tasks/$task"
          params={{ organization, deployment: name, task: task?.taskId ?? "" }}
        >
          newest of {task?.endpoint}
        </Link>{" "}
        waits: {why}
      </Notice>
    )
  );
}

function summaryOf({ series = [], step = "0s" }: QueryMetricsResponseJson = {}) {
  const stepS = Number.parseFloat(step);
  const valuesOf = (name: string, statistic?: string) =>
    numbersOf(
      series.find((one) => one.name === name && (!statistic || one.statistic === statistic))
        ?.values,
    );
  return {
    calls: totalOf(valuesOf("calls"), stepS),
    errors: totalOf(valuesOf("call_errors"), stepS),
    p95: highest(valuesOf("call_seconds", "STATISTIC_P95"), seconds),
  };
}
