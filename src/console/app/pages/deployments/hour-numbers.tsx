/** The calls and tasks of the last hour in numbers, of a deployment or of all, and what waits and runs now. */
import { Link, type LinkProps } from "@tanstack/react-router";
import type {
  DeploymentTaskStatsJson,
  TaskPercentilesJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { duration, durationMs } from "../../ui/duration.ts";
import { Numbers, type PageNumber } from "../../ui/numbers.tsx";
import { count, percent } from "../../ui/quantity.ts";
import { endedOf, toneOfFailed } from "./state-words.ts";
import "./hour-numbers.css";

interface HourNumbersProps {
  /** Undefined until it is known. */
  readonly of:
    | Pick<DeploymentTaskStatsJson, "calls" | "failedCalls" | "callTime" | "total">
    | undefined;
  /** The deployment that they are of. Default: all of the organization. */
  readonly deployment?: string;
}

export function HourNumbers({ of: stats, deployment }: HourNumbersProps) {
  const organization = useOrganization();
  const { calls = 0, failedCalls = 0, callTime, total = {} } = stats ?? {};
  const { queued = 0, running = 0, failed = 0, cancelled = 0, runTime, oldestQueuedAge } = total;
  const ended = endedOf(total);
  const search = { status: "failure", since: "1h" } as const;
  const [toCalls, toTasks]: readonly LinkProps[] =
    deployment === undefined
      ? [
          { to: "/o/$organization/deployments", params: { organization } },
          { to: "/o/$organization/tasks", params: { organization }, search },
        ]
      : [
          {
            to: "/o/$organization/deployments/$deployment/metrics",
            params: { organization, deployment },
            search: { range: "1h" },
          },
          {
            to: "/o/$organization/deployments/$deployment/tasks",
            params: { organization, deployment },
            search,
          },
        ];
  const numbers: readonly PageNumber[] = [
    { name: "Calls", value: count(calls) },
    { name: "Failed calls", ...failures({ failed: failedCalls, all: calls, link: toCalls }) },
    { name: "Call latency", ...percentiles(callTime) },
    {
      name: "Queued now",
      value: count(queued),
      ...(oldestQueuedAge !== undefined && {
        note: `oldest for ${duration(durationMs(oldestQueuedAge))}`,
      }),
    },
    {
      name: "Finished tasks",
      value: count(ended),
      ...(cancelled > 0 && { note: `${count(cancelled)} cancelled` }),
    },
    { name: "Failed tasks", ...failures({ failed, all: ended, link: toTasks }) },
    { name: "Run time", ...percentiles(runTime) },
    { name: "Running now", value: count(running) },
  ];
  return (
    <div className="hour-numbers">
      <Numbers
        label="Calls and tasks in numbers"
        numbers={
          stats ? numbers : numbers.map(({ name }) => ({ name, value: "–", note: "\u00a0" }))
        }
      />
    </div>
  );
}

interface Failed {
  readonly failed: number;
  readonly all: number;
  /** The way to those that failed. */
  readonly link: LinkProps | undefined;
}

function failures({ failed, all, link }: Failed): Omit<PageNumber, "name"> {
  if (failed === 0) {
    return { value: "0" };
  }
  return {
    value: <Link {...link}>{count(failed)}</Link>,
    note: percent(failed / Math.max(all, 1)),
    tone: toneOfFailed(failed, all),
  };
}

/** What 95 of a hundred took at most, with the half and with 99. */
function percentiles(found: TaskPercentilesJson | undefined): Omit<PageNumber, "name"> {
  const { p50, p95, p99 } = found ?? {};
  if (p50 === undefined || p95 === undefined || p99 === undefined) {
    return { value: "none" };
  }
  const [half, most, nearlyAll] = [p50, p95, p99].map((one) => duration(durationMs(one)));
  const note = [`p50 ${half}`, `p99 ${nearlyAll}`].map((text) => text.replaceAll(" ", "\u00a0"));
  return { value: most, unit: "p95", note: note.join(" · ") };
}
