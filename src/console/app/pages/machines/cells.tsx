/** What the table of machines says of one. */
import { Link } from "@tanstack/react-router";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { Share } from "../../ui/share.tsx";
import { Status } from "../../ui/status.tsx";
import type { MachineUse } from "./grouping.ts";

interface OfMachine {
  readonly of: MachineUse;
}

export function MachineName({ of: { name, joined, node, labels } }: OfMachine) {
  const about = joined === undefined ? ["node", node?.url] : ["joined", joined.platform, ...labels];
  return (
    <>
      {name}
      <span className="secondary">{about.filter(Boolean).join(", ")}</span>
    </>
  );
}

export function MachineState({ of: { loads, faults, node } }: OfMachine) {
  const all = loads.reduce((sum, { workers }) => sum + workers, 0);
  const ready = loads.reduce((sum, load) => sum + load.ready, 0);
  const { draining = false, sandbox = "kernel" } = node?.facts ?? {};
  return (
    <>
      {draining && <Status tone="warning">draining</Status>}
      {!draining && (
        <Status tone={faults.length > 0 ? "bad" : ready === all ? "good" : "working"}>
          {ready === all ? "ready" : `${ready} of ${all} ready`}
        </Status>
      )}
      {faults.map((fault) => (
        <span key={fault} className="secondary">
          {fault}
        </span>
      ))}
      {sandbox !== "kernel" && <span className="secondary">sandbox: {sandbox}</span>}
    </>
  );
}

/** All that run there where a node tells it, or those of this organization. */
export function Workers({ of: { loads, node } }: OfMachine) {
  const { workers = 0, maxWorkers = 0, waiting = 0 } = node?.facts ?? {};
  if (maxWorkers === 0) {
    return loads.reduce((sum, load) => sum + load.workers, 0);
  }
  return (
    <>
      <Share used={workers} limit={maxWorkers}>{`${workers} of ${maxWorkers}`}</Share>
      {waiting > 0 && <span className="secondary">{waiting} wait for room</span>}
    </>
  );
}

/** The deployments of this organization. */
export function Loads({ of: { loads } }: OfMachine) {
  const organization = useOrganization();
  return loads.map(({ deployment, workers, calls }) => (
    <div key={deployment} className="machine-load">
      <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment }}>
        {deployment}
      </Link>
      <span className="secondary">
        {counted(workers, "worker")}
        {calls > 0 && `, ${counted(calls, "call")}`}
      </span>
    </div>
  ));
}

/** Each GPU of a node with the deployments that have it, or what workers have of GPUs. */
export function Gpus({ of: { gpus, node } }: OfMachine) {
  if (node?.facts === undefined) {
    return gpus.map((gpu, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: two workers may have equal shares of one GPU
      <div key={`${gpu} ${index}`}>{gpu}</div>
    ));
  }
  return (node.facts.gpus ?? []).map(
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
