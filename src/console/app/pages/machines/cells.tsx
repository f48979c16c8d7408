/** What the table of machines says of one. */
import { Link } from "@tanstack/react-router";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { bytes } from "../../ui/quantity.ts";
import { Share } from "../../ui/share.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { isBusy, type MachineRow, numbersOf, workersOf } from "./rows.ts";

interface OfMachine {
  readonly of: MachineRow;
}

export function MachineName({ of: { name, node, platform, version, labels, told } }: OfMachine) {
  const kind = node ? ["node", told?.url] : ["joined", platform];
  const about = [...kind, version && `Tessera ${version}`].filter(Boolean);
  return (
    <>
      <bdi>{name || "without a name"}</bdi>
      <span className="secondary">{about.join(", ")}</span>
      {Object.keys(labels ?? {}).length > 0 && (
        <span className="secondary">
          {Object.entries(labels ?? {})
            .map((label) => label.join("="))
            .join(", ")}
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
          <Time at={drain.startedAt} style="narrow" /> by <bdi>{drain.startedBy}</bdi>
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

/** Of the machine, by all that runs on it; of a node also its disk, and what its workers may take. */
export function Load({ of: { load, told } }: OfMachine) {
  const { processors, busyProcessors, memoryBytes, usedMemoryBytes } = numbersOf(load ?? {});
  const { workers = 0, maxWorkers = 0, waiting = 0, ...facts } = told?.facts ?? {};
  const { diskBytes: disk, freeDiskBytes: free } = numbersOf(facts);
  const { memoryBytes: taken, maxMemoryBytes: room } = numbersOf(facts);
  return (
    <div className="machine-shares">
      {processors > 0 && (
        <Share used={busyProcessors} limit={processors}>
          {`${Number(busyProcessors.toFixed(1))} of ${counted(processors, "processor")}`}
        </Share>
      )}
      {memoryBytes > 0 && (
        <Share used={usedMemoryBytes} limit={memoryBytes}>
          {`${bytes(usedMemoryBytes)} of ${bytes(memoryBytes)}`}
        </Share>
      )}
      {disk > 0 && (
        <Share used={disk - free} limit={disk}>
          {`${bytes(free)} of disk free`}
        </Share>
      )}
      {maxWorkers > 0 && (
        <Share used={Math.max(workers / maxWorkers, taken / room)} limit={1}>
          {`${workers} of ${maxWorkers} workers, ${bytes(taken)} of ${bytes(room)}`}
        </Share>
      )}
      {waiting > 0 && <span className="secondary">{waiting} wait for room</span>}
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
          <span className="secondary">
            {counted(workers, "worker")}
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

export function Heard({ of: { heardAt, startedAt } }: OfMachine) {
  return (
    <>
      {heardAt === undefined ? "away" : <Time at={heardAt} style="narrow" />}
      {startedAt !== undefined && (
        <span className="secondary whole">
          since <Time at={startedAt} style="narrow" />
        </span>
      )}
    </>
  );
}
