/** One deployment: how it is doing, where it is called, and how it runs. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type {
  DeploymentJson,
  DeploymentSettingsJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { statsOf, taskStatsOf } from "../../api/task-stats.ts";
import { newestQueuedOf } from "../../api/tasks.ts";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { durationMs } from "../../ui/duration.ts";
import { Notice } from "../../ui/notice.tsx";
import { seconds } from "../../ui/quantity.ts";
import { Time } from "../../ui/time.tsx";
import { LastHour } from "../charts/lazy-hour.tsx";
import { whyQueued } from "../tasks/state.tsx";
import { CallFailures } from "./call-failures.tsx";
import { Endpoints } from "./endpoints.tsx";
import { Failures } from "./failures.tsx";
import { DeploymentFrame } from "./frame.tsx";
import { HourNumbers } from "./hour-numbers.tsx";
import { placeOf } from "./place.ts";
import { Workers } from "./workers.tsx";

const ACCESS: Readonly<Record<string, string>> = {
  NETWORK_ACCESS_NONE: "Nothing",
  NETWORK_ACCESS_ALLOW: "",
  NETWORK_ACCESS_OPEN: "The internet",
};

export function DeploymentOverview() {
  return (
    <DeploymentFrame title="Overview">
      {(deployment) => (
        <div className="deployment-overview">
          {deployment.statusReason && (
            <Notice kind="warning">
              <pre>{deployment.statusReason}</pre>
            </Notice>
          )}
          <Health name={deployment.name ?? ""} />
          <div className="deployment-columns">
            <div>
              <section aria-labelledby="address">
                <h2 id="address">Address</h2>
                <Command text={deployment.url ?? ""} />
              </section>
              <Endpoints of={deployment} />
              <Workers of={deployment} />
            </div>
            <Facts deployment={deployment} />
          </div>
        </div>
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
  const access = ACCESS[network?.access ?? ""] ?? "The internet";
  const facts = [
    [
      "Callers",
      deployment.authorization ? "Protected: they need a token" : "Public: anybody may call",
    ],
    [
      "Workers",
      settings.place === "WORKER_PLACE_REMOTE"
        ? `${workers} ready, as many as join`
        : `${workers} ready on ${counted(nodes, "node")}, min ${minWorkers}, max ${maxWorkers}`,
    ],
    ["Target queue time", queueTime === undefined ? "" : seconds(durationMs(queueTime) / 1_000)],
    [
      "Time to load",
      readyTimeout === "0s"
        ? ""
        : `Up to ${seconds(durationMs(readyTimeout) / 1_000)} for a worker`,
    ],
    ["GPUs", gpusOf(settings)],
    ["Processes", processes === 0 ? "" : `${processes} besides its own in each worker`],
    ["Each worker", `${memoryMib} MiB of memory, ${counted(cpu, "processor")}`],
    ["May reach", `${access} ${(network?.hosts ?? []).join(", ")}`.trim()],
    ["Workers run on", placeOf(settings)],
    [
      "Revision",
      targetRevision === revision
        ? `r${revision}`
        : `${revision ? `r${revision}` : "None"}, r${targetRevision} starts`,
    ],
    ["Environment", Object.keys(env).join(", ") || "No variables"],
    ["Withheld secrets", deployment.secretsWithheld?.join(", ") ?? ""],
  ] as const;
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">How it runs</h2>
      <dl className="card facts two-columns">
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

// How a deployment did in the last hour: in numbers, why calls and tasks failed, and over time.

function Health({ name }: { readonly name: string }) {
  const organization = useOrganization();
  const { data } = useQuery(taskStatsOf(organization));
  const stats = data && statsOf(data, name);
  const { queued = 0, failed = 0 } = stats?.total ?? {};
  return (
    <section aria-labelledby="hour" className="hour deployment-hour">
      <h2 id="hour">Last hour</h2>
      <HourNumbers of={stats} deployment={name} />
      {queued > 0 && <WhyQueued name={name} />}
      {stats && <CallFailures deployment={name} stats={stats} />}
      {failed > 0 && <Failures name={name} />}
      <LastHour organization={organization} deployment={name} />
    </section>
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
