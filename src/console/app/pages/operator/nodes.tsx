/** The nodes of the platform, as each described itself last. */
import { useSuspenseQuery } from "@tanstack/react-query";
import type { NodeJson } from "../../../../../gen/tessera/v1/operator_pb.js";
import { nodes } from "../../api/operator.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";

/** Below it, little is left for logs and artifacts. */
const MIN_FREE_DISK_BYTES = 1024 ** 3;

export function Nodes() {
  const { data: listed } = useSuspenseQuery(nodes);
  return (
    <section aria-labelledby="nodes">
      <h2 id="nodes">Nodes</h2>
      <DataTable
        label="Nodes that live"
        items={listed}
        keyOf={({ nodeId = "" }) => nodeId}
        columns={[
          {
            name: "Node",
            cell: ({ nodeId, url, facts }) => (
              <>
                {nodeId}
                {facts?.draining && <Status tone="warning">draining</Status>}
                {url && <span className="secondary">{url}</span>}
              </>
            ),
          },
          { name: "Version", cell: ({ facts }) => facts?.version ?? "an earlier one" },
          { name: "Sandbox", cell: (node) => <Sandbox node={node} /> },
          { name: "Workers", cell: (node) => <Workers node={node} /> },
          { name: "Their memory", cell: memoryOf },
          { name: "Free disk", cell: (node) => <Disk node={node} /> },
          ...(listed.some(({ facts }) => (facts?.gpus ?? []).length > 0)
            ? [{ name: "GPUs", cell: (node: NodeJson) => <Gpus node={node} /> }]
            : []),
          {
            name: "Started",
            cell: ({ startedAt }) => startedAt !== undefined && <Time at={startedAt} />,
          },
        ]}
      />
    </section>
  );
}

interface NodeProps {
  readonly node: NodeJson;
}

function Sandbox({ node: { facts } }: NodeProps) {
  if (facts === undefined) {
    return null;
  }
  return facts.sandbox === "kernel" ? (
    "kernel"
  ) : (
    <Status tone="warning">{facts.sandbox ?? "unknown"}</Status>
  );
}

function Workers({ node: { facts } }: NodeProps) {
  const { workers = 0, maxWorkers = 0, waiting = 0 } = facts ?? {};
  return (
    facts && (
      <>
        {workers} of {maxWorkers}
        {waiting > 0 && <span className="secondary">{waiting} wait for room</span>}
      </>
    )
  );
}

function memoryOf({ facts }: NodeJson): string | undefined {
  const { memoryBytes = 0, maxMemoryBytes = 0 } = facts ?? {};
  return facts && `${bytes(Number(memoryBytes))} of ${bytes(Number(maxMemoryBytes))}`;
}

/** Each GPU, and the deployments that have it. */
function Gpus({ node: { facts } }: NodeProps) {
  return (facts?.gpus ?? []).map(
    ({ index = 0, name, slice, holders = [], dealt, leftOut = "" }) => (
      <div key={`${index} ${slice}`}>
        {slice === undefined ? index : `${index}, slice ${slice}`}: {name}
        <span className="secondary">
          {holders.length === 0
            ? "free"
            : `${dealt === 1 ? "" : `${dealt} of it: `}${holders.join(", ")}`}
        </span>
        {leftOut !== "" && <Status tone="warning">{leftOut}</Status>}
      </div>
    ),
  );
}

function Disk({ node: { facts } }: NodeProps) {
  const { freeDiskBytes = 0, diskBytes = 0 } = facts ?? {};
  const free = Number(freeDiskBytes);
  if (Number(diskBytes) === 0) {
    return null;
  }
  return free < MIN_FREE_DISK_BYTES ? <Status tone="bad">{bytes(free)}</Status> : bytes(free);
}
