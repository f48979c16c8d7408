/** The machines that run the workers of an organization, and for operators the nodes as a whole. */
import { keepPreviousData, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { deploymentsOf } from "../../api/deployments.ts";
import { allWorkersOf, MAX_DEPLOYMENTS_WITH_WORKERS } from "../../api/machines.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { storageUseOf } from "../../api/storage.ts";
import { joinCommand } from "../../api/workers.ts";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { Nodes } from "../operator/nodes.tsx";
import { type MachineUse, machinesOf } from "./grouping.ts";
import "./machines.css";

export function Machines() {
  const { isOperator } = usePerson();
  return (
    <Page title="Machines" description="What runs the workers of this organization.">
      <WorkersByMachine />
      {isOperator && <Nodes />}
      <Storage />
      <Joining />
    </Page>
  );
}

function WorkersByMachine() {
  const organization = useOrganization();
  const { data: listed } = useSuspenseQuery(deploymentsOf(organization));
  const { data } = useQuery({
    ...allWorkersOf(organization, listed),
    placeholderData: keepPreviousData,
  });
  if (data === undefined) {
    return <Loading />;
  }
  const machines = machinesOf(data.workers);
  if (machines.length === 0) {
    return (
      <Empty inPage title="No worker runs now">
        <p>Workers start with the next call, or when a machine joins.</p>
      </Empty>
    );
  }
  return (
    <section aria-labelledby="machines">
      <h2 id="machines">
        {counted(data.workers.length, "worker")} on {counted(machines.length, "machine")}
      </h2>
      <DataTable
        label="Machines with their workers"
        items={machines}
        keyOf={({ name, joined }) => `${name} ${joined?.platform}`}
        columns={[
          { name: "Machine", cell: (machine) => <Name of={machine} /> },
          { name: "State", cell: (machine) => <State of={machine} /> },
          { name: "Runs", cell: (machine) => <Loads of={machine} /> },
          {
            name: "Calls",
            cell: ({ loads }) => loads.reduce((sum, { calls }) => sum + calls, 0),
          },
          { name: "Labels", cell: ({ labels }) => labels.join(", ") || "none" },
          ...(machines.some(({ gpus }) => gpus.length > 0)
            ? [{ name: "GPUs", cell: (machine: MachineUse) => <Gpus of={machine} /> }]
            : []),
          { name: "Since", cell: ({ since }) => since !== undefined && <Time at={since} /> },
        ]}
      />
      {data.leftOut > 0 && (
        <p className="secondary">
          These run the {MAX_DEPLOYMENTS_WITH_WORKERS} deployments with most workers;{" "}
          {counted(data.leftOut, "more deployment")} can be seen each on its own page.
        </p>
      )}
    </section>
  );
}

interface OfMachine {
  readonly of: MachineUse;
}

function Name({ of: { name, joined } }: OfMachine) {
  const about = joined === undefined ? "a node of the platform" : "joined";
  return (
    <>
      {name}
      <span className="secondary">
        {[about, joined?.platform, joined?.version].filter(Boolean).join(", ")}
      </span>
    </>
  );
}

function State({ of: { loads, faults } }: OfMachine) {
  const all = loads.reduce((sum, { workers }) => sum + workers, 0);
  const ready = loads.reduce((sum, load) => sum + load.ready, 0);
  return (
    <>
      <Status tone={faults.length > 0 ? "bad" : ready === all ? "good" : "working"}>
        {ready === all ? "ready" : `${ready} of ${all} ready`}
      </Status>
      {faults.map((fault) => (
        <span key={fault} className="secondary">
          {fault}
        </span>
      ))}
    </>
  );
}

function Loads({ of: { loads } }: OfMachine) {
  const organization = useOrganization();
  return loads.map(({ deployment, workers }) => (
    <div key={deployment}>
      <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment }}>
        {deployment}
      </Link>{" "}
      <span className="machine-workers">{counted(workers, "worker")}</span>
    </div>
  ));
}

function Gpus({ of: { gpus } }: OfMachine) {
  return gpus.map((gpu, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: two workers may have equal shares of one GPU
    <div key={`${gpu} ${index}`}>{gpu}</div>
  ));
}

/** How much of its storage the organization has used, and what takes it. */
function Storage() {
  const organization = useOrganization();
  const { data: use } = useQuery(storageUseOf(organization));
  if (use === undefined) {
    return <Loading />;
  }
  const [used, limit, models, unused] = [
    use.usedBytes,
    use.limitBytes,
    use.modelBytes,
    use.unusedBytes,
  ].map((text) => Number(text ?? 0));
  return (
    <section aria-labelledby="storage">
      <h2 id="storage">Storage</h2>
      <div className="storage-used">
        <meter aria-labelledby="storage-said" max={limit} high={(limit ?? 0) * 0.9} value={used} />
        <p id="storage-said">
          {bytes(used ?? 0)} of {bytes(limit ?? 0)} used: {bytes(models ?? 0)} by models,{" "}
          {bytes(unused ?? 0)} by no revision, which goes when no deploy needs it.
        </p>
      </div>
      {use.deployments !== undefined && use.deployments.length > 0 && (
        <DataTable
          label="Deployments by what they store"
          items={use.deployments}
          keyOf={({ deployment = "" }) => deployment}
          columns={[
            {
              name: "Deployment",
              cell: ({ deployment = "" }) => (
                <Link
                  to="/o/$organization/deployments/$deployment/revisions"
                  params={{ organization, deployment }}
                >
                  {deployment}
                </Link>
              ),
            },
            { name: "Revisions kept", cell: ({ revisions = 0 }) => revisions },
            { name: "Their files", cell: (one) => bytes(Number(one.bytes ?? 0)) },
          ]}
        />
      )}
    </section>
  );
}

function Joining() {
  const organization = useOrganization();
  return (
    <section aria-labelledby="joining">
      <h2 id="joining">Join a machine</h2>
      <p className="secondary">
        A machine with a GPU, or one beside the data, joins with one command and{" "}
        <Link to="/o/$organization/tokens" params={{ organization }}>
          a worker token
        </Link>
        . It needs no open port.
      </p>
      <Command text={joinCommand("DEPLOYMENT")} />
    </section>
  );
}
