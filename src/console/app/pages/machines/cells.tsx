/** What the table of machines says of one. */
import { Link } from "@tanstack/react-router";
import { useOrganization } from "../../api/session.ts";
import { CopyChip } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { bytes } from "../../ui/quantity.ts";
import { Share } from "../../ui/share.tsx";
import { Status } from "../../ui/status.tsx";
import { Time, Uptime } from "../../ui/time.tsx";
import { isBusy, type MachineRow, numbersOf, workersOf } from "./rows.ts";

interface OfMachine {
  readonly of: MachineRow;
}

export function MachineName({ of: { name, node, platform, version, labels, told } }: OfMachine) {
  const about = [node ? "node" : "joined", platform, version && `Tessera ${version}`];
  const words = Object.entries(labels ?? {}).map((label) => label.join("="));
  return (
    <>
      <bdi>{name || "without a name"}</bdi>
      <span className="secondary">{about.filter(Boolean).join(", ")}</span>
      {words.length > 0 && <span className="secondary">{words.join(", ")}</span>}
      {told?.url && (
        <span className="secondary">
          <CopyChip text={told.url} what="the address" />
        </span>
      )}
    </>
  );
}

export function MachineState({ of: row }: OfMachine) {
  const { drain, faults = [], isAway, told } = row;
  const { workers, ready } = workersOf(row);
  const { draining: isStopping = false, sandbox = "kernel" } = told?.facts ?? {};
  return (
    <>
      {drain !== undefined ? (
        <Status tone={isBusy(row) ? "warning" : "idle"}>
          {isBusy(row) ? "draining" : isAway ? "drained, away" : "drained"}
        </Status>
      ) : isStopping ? (
        <Status tone="warning">stopping</Status>
      ) : (
        <Status tone={faults.length > 0 ? "bad" : ready === workers ? "good" : "working"}>
          {ready === workers ? "ready" : `${ready} of ${workers} ready`}
        </Status>
      )}
      {drain?.startedAt !== undefined && (
        <span className="secondary">
          <Time at={drain.startedAt} /> by <bdi>{drain.startedBy}</bdi>
        </span>
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

/** How much is used of the machine, by all that runs on it; of a node also of what its workers may take. */
export function Load({ of: { load, told } }: OfMachine) {
  const { processors, busyProcessors, memoryBytes, usedMemoryBytes } = numbersOf(load ?? {});
  const { workers = 0, maxWorkers = 0, waiting = 0, ...facts } = told?.facts ?? {};
  const { diskBytes, freeDiskBytes, memoryBytes: taken, maxMemoryBytes: room } = numbersOf(facts);
  const inBytes = (name: string, used: number, limit: number, problem: string) =>
    limit > 0 && (
      <Share name={name} used={used} limit={limit} problem={problem}>
        {`${bytes(used)} of ${bytes(limit)}`}
      </Share>
    );
  return (
    <div className="machine-shares">
      {processors > 0 && (
        <Share name="CPU" used={busyProcessors} limit={processors} problem="all busy">
          {`${Number(busyProcessors.toFixed(1))} of ${processors}`}
        </Share>
      )}
      {inBytes("Memory", usedMemoryBytes, memoryBytes, "nearly full")}
      {inBytes("Disk", diskBytes - freeDiskBytes, diskBytes, "nearly full")}
      {maxWorkers > 0 && (
        <Share name="Worker slots" used={workers} limit={maxWorkers} problem="nearly all taken">
          {`${workers} of ${maxWorkers}`}
        </Share>
      )}
      {inBytes("Worker memory", taken, room, "nearly all taken")}
      {waiting > 0 && <Status tone="warning">{`${waiting} wait for room`}</Status>}
    </div>
  );
}

/** Deployments in the cell of a machine. */
const MAX_SHOWN_RUNS = 12;

/** The deployments of this organization. */
export function Runs({ of: { runs = [], omittedRuns = 0 } }: OfMachine) {
  const organization = useOrganization();
  const left = Math.max(0, runs.length - MAX_SHOWN_RUNS) + omittedRuns;
  return (
    <>
      {runs.slice(0, MAX_SHOWN_RUNS).map(({ deployment = "", workers = 0, calls = 0 }) => (
        <div key={deployment} className="machine-load">
          <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment }}>
            {deployment}
          </Link>
          <span className="secondary" title={counted(workers, "worker")}>
            × {workers}
            {calls > 0 && `, ${counted(calls, "call")}`}
          </span>
        </div>
      ))}
      {left > 0 && <span className="secondary">and {counted(left, "more deployment")}</span>}
    </>
  );
}

/** Each GPU of a node with the deployments that have it, or what workers have of GPUs. */
export function Gpus({ of: { gpus = [], told } }: OfMachine) {
  if (told?.facts === undefined) {
    return gpus.map((gpu, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: two workers may have equal shares of one GPU
      <div key={`${gpu} ${index}`}>{gpu}</div>
    ));
  }
  return (told.facts.gpus ?? []).map(
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

/** When it was last heard, and for how long it is up. */
export function Heard({ of: { heardAt, startedAt } }: OfMachine) {
  return (
    <>
      {heardAt === undefined ? "away" : <Time at={heardAt} />}
      {startedAt !== undefined && (
        <span className="secondary whole">
          <Uptime since={startedAt} />
        </span>
      )}
    </>
  );
}
