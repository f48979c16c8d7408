/** One deployment: where it is called, how it runs, and its endpoints. */
import type {
  DeploymentEndpointJson,
  DeploymentJson,
  DeploymentSettingsJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentFrame } from "./frame.tsx";
import { DeploymentState } from "./state.tsx";
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
          <section aria-labelledby="address">
            <h2 id="address">Address</h2>
            <Command text={deployment.url ?? ""} />
          </section>
          <Facts deployment={deployment} />
          <Placements of={deployment} />
          <Workers of={deployment} />
          <section aria-labelledby="endpoints">
            <h2 id="endpoints">Endpoints</h2>
            <ul className="cards">
              {deployment.endpoints?.map((endpoint) => (
                <li key={endpoint.name} className="card">
                  <strong>{endpoint.name}</strong>
                  <span className="secondary">
                    {KINDS[endpoint.kind ?? ""] ?? "api: answers at once"}
                  </span>
                  {placeOf(endpoint) !== placeOf(deployment.settings ?? {}) && (
                    <span className="secondary">runs on {placeOf(endpoint) || "any machine"}</span>
                  )}
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </DeploymentFrame>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  ENDPOINT_KIND_TASK: "task: runs in the queue",
  ENDPOINT_KIND_SERVER: "server: answers at this path, and below it",
};

/** What each node has of it. */
function Placements({ of: { placements = [] } }: { readonly of: DeploymentJson }) {
  return (
    placements.length > 0 && (
      <section aria-labelledby="nodes">
        <h2 id="nodes">Where it runs</h2>
        <DataTable
          label="Nodes"
          items={placements}
          keyOf={({ node = "" }) => node}
          columns={[
            { name: "Node", cell: ({ node }) => node },
            { name: "State", cell: (one) => <DeploymentState deployment={one} /> },
            { name: "Revision", cell: ({ revision }) => revision || "none" },
            { name: "Workers", cell: ({ workers = 0 }) => workers },
          ]}
        />
      </section>
    )
  );
}

const PLACES: Readonly<Record<string, string>> = {
  WORKER_PLACE_LOCAL: "the nodes only",
  WORKER_PLACE_REMOTE: "other machines, from which they join",
};

/** Where workers may run; empty for anywhere. */
function placeOf({
  place,
  requires = {},
}: Pick<DeploymentSettingsJson & DeploymentEndpointJson, "place" | "requires">): string {
  const labels = Object.entries(requires).map((label) => label.join("="));
  const where = PLACES[place ?? ""] ?? (labels.length > 0 ? "the nodes and other machines" : "");
  return labels.length === 0 ? where : `${where}, with ${labels.join(", ")}`;
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
      <dl className="facts">
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
