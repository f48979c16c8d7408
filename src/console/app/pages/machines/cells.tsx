/** What the table of machines says of one. */
import { Link } from "@tanstack/react-router";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { bytes } from "../../ui/quantity.ts";
import { Share } from "../../ui/share.tsx";
import { Status } from "../../ui/status.tsx";
import { Time, Uptime } from "../../ui/time.tsx";
import { useNow } from "../../ui/use-now.ts";
import { isBusy, type MachineRow, numbersOf, workersOf } from "./rows.ts";

interface OfMachine {
  readonly of: MachineRow;
}

/** Its name, with the rest in one line; its address where there is room. */
export function MachineName({ of: { name, node, platform, version, labels, told } }: OfMachine) {
  const words = Object.entries(labels ?? {}).map((label) => label.join("="));
  const about = [node ? "node" : "joined", platform, version && `Tessera ${version}`, ...words];
  const line = about.filter(Boolean).join(", ");
  const { url } = told ?? {};
  return (
    <>
      <bdi>{name || "without a name"}</bdi>
      <span className="secondary machine-about" title={url ? `${line}, ${url}` : line}>
        {line}
        {url && <span className="machine-url">, {url}</span>}
      </span>
    </>
  );
}

/** Nodes and machines report more often than this. */
const SILENT_MS = 20_000;

export function MachineState({ of: row }: OfMachine) {
  const { drain, faults = [], isAway, told, startedAt, heardAt } = row;
  const nowMs = Math.max(useNow(SILENT_MS), Date.now());
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
      {startedAt !== undefined && drain === undefined && (
        <span className="secondary">
          <Uptime since={startedAt} />
        </span>
      )}
      {heardAt !== undefined && nowMs - Date.parse(heardAt) > SILENT_MS && (
        <span className="secondary">
          heard <Time at={heardAt} />
        </span>
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

/** How much is used of the processors of a machine, by all that runs on it. */
export function Processors({ of: { load } }: OfMachine) {
  const { processors, busyProcessors } = numbersOf(load ?? {});
  return (
    processors > 0 && (
      <Share used={busyProcessors} limit={processors} problem="busy">
        {`${Number(busyProcessors.toFixed(1))} of ${counted(processors, "core")}`}
      </Share>
    )
  );
}

/** The same of its memory. */
export function Memory({ of: { load } }: OfMachine) {
  const { memoryBytes, usedMemoryBytes } = numbersOf(load ?? {});
  return <Bytes used={usedMemoryBytes} limit={memoryBytes} />;
}

/** The same of the disk with the data of a node. */
export function Disk({ of: { told } }: OfMachine) {
  const { diskBytes, freeDiskBytes } = numbersOf(told?.facts ?? {});
  return <Bytes used={diskBytes - freeDiskBytes} limit={diskBytes} />;
}

/** From this part of the memory for workers on, their use of it is shown as well. */
const MIN_SHOWN_MEMORY_PART = 0.75;

/** The workers of a node, of the most that it has room for. */
export function Room({ of: { told } }: OfMachine) {
  const { workers = 0, maxWorkers = 0, waiting = 0, ...facts } = told?.facts ?? {};
  const { memoryBytes, maxMemoryBytes } = numbersOf(facts);
  return (
    <>
      {maxWorkers > 0 && (
        <Share used={workers} limit={maxWorkers} problem="full">
          {`${workers} of ${maxWorkers}`}
        </Share>
      )}
      {memoryBytes > maxMemoryBytes * MIN_SHOWN_MEMORY_PART && (
        <Bytes used={memoryBytes} limit={maxMemoryBytes} />
      )}
      {waiting > 0 && <Status tone="warning">{`${waiting} wait for room`}</Status>}
    </>
  );
}

interface BytesProps {
  readonly used: number;
  readonly limit: number;
}

/** Such as `2.1 of 16 GiB`; nothing where the limit is not known. */
function Bytes({ used, limit }: BytesProps) {
  const [amount = ""] = bytes(used, limit).split(" ");
  return (
    limit > 0 && (
      <Share used={used} limit={limit} problem="full">
        {`${amount} of ${bytes(limit)}`}
      </Share>
    )
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
        <span key={deployment} className="machine-run">
          <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment }}>
            {deployment}
          </Link>{" "}
          <span title={counted(workers, "worker")}>
            × {workers}
            {calls > 0 && `, ${counted(calls, "call")}`}
          </span>
        </span>
      ))}
      {left > 0 && <span className="machine-run">and {counted(left, "more deployment")}</span>}
    </>
  );
}

/** How much workers have of the GPUs of a node, with the deployments that have each; or what workers have of GPUs. */
export function Gpus({ of: { gpus = [], told } }: OfMachine) {
  if (told?.facts === undefined) {
    return gpus.map((gpu, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: two workers may have equal shares of one GPU
      <div key={`${gpu} ${index}`}>{gpu}</div>
    ));
  }
  const all = told.facts.gpus ?? [];
  if (all.length === 0) {
    return null;
  }
  const dealt = Number(all.reduce((sum, gpu) => sum + Number(gpu.dealt ?? 0), 0).toFixed(2));
  const faulty = all.filter(({ leftOut }) => leftOut).length;
  return (
    <>
      <details className="machine-gpus">
        <summary>
          <Share used={dealt} limit={all.length}>{`${dealt} of ${all.length}`}</Share>
        </summary>
        {all.map(({ index = 0, name, slice, holders = [], dealt: part, leftOut = "" }) => (
          <div key={`${index} ${slice}`}>
            {slice === undefined ? index : `${index}, slice ${slice}`}: {name}
            <span className="secondary">
              {holders.length === 0
                ? "free"
                : `${part === 1 ? "" : `${part} of it: `}${holders.join(", ")}`}
            </span>
            {leftOut !== "" && <Status tone="warning">{leftOut}</Status>}
          </div>
        ))}
      </details>
      {faulty > 0 && <Status tone="warning">{`${faulty} left out`}</Status>}
    </>
  );
}
