/** The machines that run the workers of an organization; operators see every node, and how full it is. */
import { keepPreviousData, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { deploymentsOf } from "../../api/deployments.ts";
import { allWorkersOf, MAX_DEPLOYMENTS_PER_READ } from "../../api/machines.ts";
import { nodes } from "../../api/operator.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { storageUseOf } from "../../api/storage.ts";
import { joinCommand } from "../../api/workers.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Share } from "../../ui/share.tsx";
import { Time } from "../../ui/time.tsx";
import { Gpus, Loads, MachineName, MachineState, Workers } from "./cells.tsx";
import { type MachineUse, machinesOf } from "./grouping.ts";
import "./machines.css";

export function Machines() {
  const [isJoining, setJoining] = useState(false);
  return (
    <Page
      title="Machines"
      description="Nodes of the platform and machines that joined, with the workers of this organization."
      actions={
        <Button aria-expanded={isJoining} onClick={() => setJoining(!isJoining)}>
          Join a machine
        </Button>
      }
    >
      {isJoining && <Joining />}
      <WorkersByMachine />
      <Storage />
    </Page>
  );
}

function WorkersByMachine() {
  const organization = useOrganization();
  const { isOperator } = usePerson();
  const [limit, setLimit] = useState(MAX_DEPLOYMENTS_PER_READ);
  const { data: listed } = useSuspenseQuery(deploymentsOf(organization));
  const { data } = useQuery({
    ...allWorkersOf(organization, listed, limit),
    placeholderData: keepPreviousData,
  });
  const { data: all } = useQuery({ ...nodes, enabled: isOperator });
  if (data === undefined || (isOperator && all === undefined)) {
    return <Loading />;
  }
  const machines = machinesOf(data.workers, all);
  if (machines.length === 0) {
    return (
      <Empty inPage title="No workers are running">
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
        columns={columnsFor(machines)}
      />
      {data.leftOut > 0 && (
        <p className="result-line">
          <span className="secondary">
            {counted(data.leftOut, "more deployment")} with fewer workers not read yet.
          </span>
          <Button onClick={() => setLimit(limit + MAX_DEPLOYMENTS_PER_READ)}>Read more</Button>
        </p>
      )}
    </section>
  );
}

/** Those that some machine has a value for. */
function columnsFor(machines: readonly MachineUse[]) {
  const some = (has: (machine: MachineUse) => boolean) => machines.some(has);
  const factsOf = ({ node }: MachineUse) => node?.facts;
  return [
    { name: "Machine", cell: (machine: MachineUse) => <MachineName of={machine} /> },
    { name: "State", cell: (machine: MachineUse) => <MachineState of={machine} /> },
    ...(some((one) => one.joined !== undefined || factsOf(one) !== undefined)
      ? [
          {
            name: "Version",
            cell: (one: MachineUse) => factsOf(one)?.version ?? one.joined?.version,
          },
        ]
      : []),
    { name: "Workers", cell: (machine: MachineUse) => <Workers of={machine} /> },
    ...(some((one) => factsOf(one) !== undefined)
      ? [
          { name: "Memory", cell: (machine: MachineUse) => <Memory of={machine} /> },
          { name: "Disk", cell: (machine: MachineUse) => <Disk of={machine} /> },
        ]
      : []),
    ...(some(({ gpus, node }) => gpus.length > 0 || (node?.facts?.gpus ?? []).length > 0)
      ? [{ name: "GPUs", cell: (machine: MachineUse) => <Gpus of={machine} /> }]
      : []),
    { name: "Runs", cell: (machine: MachineUse) => <Loads of={machine} /> },
    {
      name: "Since",
      cell: ({ since }: MachineUse) => since !== undefined && <Time at={since} style="narrow" />,
    },
  ];
}

interface OfMachine {
  readonly of: MachineUse;
}

/** What its workers use of what they may. */
function Memory({ of: { node } }: OfMachine) {
  const { memoryBytes, maxMemoryBytes } = node?.facts ?? {};
  if (maxMemoryBytes === undefined) {
    return null;
  }
  const [used, limit] = [Number(memoryBytes ?? 0), Number(maxMemoryBytes)] as const;
  return (
    <Share used={used} limit={limit}>
      {`${bytes(used)} of ${bytes(limit)}`}
    </Share>
  );
}

function Disk({ of: { node } }: OfMachine) {
  const [free, all] = [node?.facts?.freeDiskBytes, node?.facts?.diskBytes].map((text) =>
    Number(text ?? 0),
  ) as [number, number];
  return (
    all > 0 && (
      <Share used={all - free} limit={all}>
        {`${bytes(free)} free`}
      </Share>
    )
  );
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
  ].map((text) => Number(text ?? 0)) as [number, number, number, number];
  const parts = [
    models > 0 && `${bytes(models)} of models`,
    unused > 0 && `${bytes(unused)} of unreferenced files, deleted when no deploy needs them`,
  ].filter((part) => part !== false);
  return (
    <section aria-labelledby="storage">
      <h2 id="storage">Storage</h2>
      <div className="storage-used">
        <Share used={used} limit={limit}>
          {`${bytes(used)} of ${bytes(limit)} used`}
        </Share>
        {parts.length > 0 && <p className="secondary">{parts.join("; ")}</p>}
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
            { name: "Revisions", isNumber: true, cell: ({ revisions = 0 }) => revisions },
            { name: "Size", isNumber: true, cell: (one) => bytes(Number(one.bytes ?? 0)) },
          ]}
        />
      )}
    </section>
  );
}

function Joining() {
  const organization = useOrganization();
  return (
    <section aria-labelledby="joining" className="card">
      <h2 id="joining">Join a machine</h2>
      <p className="secondary">
        A machine with a GPU, or one beside the data, joins a deployment with this command and{" "}
        <Link to="/o/$organization/tokens" params={{ organization }}>
          a worker token
        </Link>
        . It needs no open port, and leaves with Ctrl-C once its calls have ended.
      </p>
      <Command text={joinCommand("DEPLOYMENT")} />
    </section>
  );
}
