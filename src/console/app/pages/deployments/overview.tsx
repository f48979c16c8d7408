/** One deployment: how it is doing, where it is called, and how it runs. */
import type {
  DeploymentJson,
  DeploymentSettingsJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";
import { Endpoints } from "./endpoints.tsx";
import { DeploymentFrame } from "./frame.tsx";
import { Health } from "./health.tsx";
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
