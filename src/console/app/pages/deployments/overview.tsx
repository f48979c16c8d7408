/** One deployment: how it is doing, where it is called, and how it runs. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type {
  DeploymentJson,
  DeploymentSettingsJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { QueryMetricsResponseJson } from "../../../../../gen/tessera/v1/metrics_pb.js";
import { metricsOf } from "../../api/metrics.ts";
import { useOrganization } from "../../api/session.ts";
import { durationMs, statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { newestQueuedOf } from "../../api/tasks.ts";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { highest, numbersOf, totalOf } from "../../ui/line.ts";
import { Notice } from "../../ui/notice.tsx";
import { Numbers } from "../../ui/numbers.tsx";
import { count, percent, seconds } from "../../ui/quantity.ts";
import { Time } from "../../ui/time.tsx";
import { RANGES } from "../../ui/time-range.ts";
import { whyQueued } from "../tasks/state.tsx";
import { Endpoints } from "./endpoints.tsx";
import { DeploymentFrame } from "./frame.tsx";
import { placeOf } from "./place.ts";
import { Workers } from "./workers.tsx";

const ACCESS: Readonly<Record<string, string>> = {
  NETWORK_ACCESS_NONE: "none",
  NETWORK_ACCESS_ALLOW: "named hosts",
  NETWORK_ACCESS_OPEN: "public addresses",
};

export function DeploymentOverview() {
  return (
    <DeploymentFrame title="Overview">
      {(deployment) => (
        <>
          {deployment.statusReason && (
            <Notice kind="warning">
              <pre>{deployment.statusReason}</pre>
            </Notice>
          )}
          <Health name={deployment.name ?? ""} />
          <section aria-labelledby="address">
            <h2 id="address">Address</h2>
            <Command text={deployment.url ?? ""} />
          </section>
          <Endpoints of={deployment} />
          <Facts deployment={deployment} />
          <Workers of={deployment} />
        </>
      )}
    </DeploymentFrame>
  );
}

/** What each worker has of GPUs; empty where its code says it. */
function gpusOf({
  gpus = 0,
  gpuMemoryMib = 0,
}: Pick<DeploymentSettingsJson, "gpus" | "gpuMemoryMib">): string {
  const asked = Number(gpus);
  const count = asked + gpuMemoryMib > 0 ? Math.max(1, asked) : 0;
  const share = [
    ...(asked > 0 && asked < 1 ? [asked] : []),
    ...(gpuMemoryMib === 0 ? [] : [`${gpuMemoryMib} MiB`]),
  ].join(" and ");
  const of = share === "" ? "" : `${share} of `;
  return count === 0 ? "" : `${of}${counted(count, "GPU")} for each worker`;
}

function Facts({ deployment }: { readonly deployment: DeploymentJson }) {
  const { settings = {}, workers = 0, nodes = 0, revision, targetRevision } = deployment;
  const { minWorkers = 0, maxWorkers = 0, memoryMib, cpu, network, env = {} } = settings;
  const { queueTime, readyTimeout = "0s", processes = 0 } = settings;
  const access = ACCESS[network?.access ?? ""] ?? "public addresses";
  const facts = [
    [
      "Callers",
      deployment.authorization ? "Protected: they need a token" : "Public: anybody may call",
    ],
    [
      "Workers",
      settings.place === "WORKER_PLACE_REMOTE"
        ? `${workers} ready, as many as join`
        : `${workers} ready on ${counted(nodes, "node")}, between ${minWorkers} and ${maxWorkers}`,
    ],
    ["Queue time", queueTime === undefined ? "" : `tasks should wait at most ${queueTime}`],
    ["Time to load", readyTimeout === "0s" ? "" : `a worker may take ${readyTimeout}`],
    ["GPUs", gpusOf(settings)],
    ["Processes", processes === 0 ? "" : `${processes} besides its own in each worker`],
    ["Each worker", `${memoryMib} MiB of memory, ${counted(cpu, "processor")}`],
    ["Network", [access, ...(network?.hosts ?? [])].join(" ")],
    ["Workers run on", placeOf(settings)],
    [
      "Revision",
      targetRevision === revision
        ? `${revision}`
        : `${revision || "none"}, ${targetRevision} starts`,
    ],
    ["Environment", Object.keys(env).join(", ") || "no variables"],
    ["Withheld secrets", deployment.secretsWithheld?.join(", ") ?? ""],
  ] as const;
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">How it runs</h2>
      <dl className="facts two-columns">
        {facts
          .filter(([, value]) => value !== "")
          .map(([term, value]) => (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        <div>
          <dt>Changed</dt>
          <dd>{deployment.updatedAt !== undefined && <Time at={deployment.updatedAt} />}</dd>
        </div>
      </dl>
    </section>
  );
}

// How a deployment did in the last hour, in numbers.

const METRICS = ["METRIC_CALLS", "METRIC_CALL_ERRORS", "METRIC_CALL_SECONDS"] as const;

function Health({ name }: { readonly name: string }) {
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
