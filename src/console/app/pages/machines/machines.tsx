/** The machines that run the workers of an organization; operators see every node, and how full it is. */
import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { messageOf } from "../../api/errors.ts";
import { drain as drainMachine, machinesOf, takeBack } from "../../api/machines.ts";
import { nodes } from "../../api/operator.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { storageUseOf } from "../../api/storage.ts";
import { joinCommand } from "../../api/workers.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { counted } from "../../ui/counted.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { useFinder } from "../../ui/finder.tsx";
import { isolated } from "../../ui/isolated.ts";
import { Loading } from "../../ui/loading.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Share } from "../../ui/share.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { Disk, Gpus, MachineName, MachineState, Memory, Processors, Room, Runs } from "./cells.tsx";
import { Launches } from "./launches.tsx";
import { type MachineRow, rowsOf, workersOf } from "./rows.ts";
import "./machines.css";

/** Rows of the table, until all are asked for. */
const MAX_SHOWN_MACHINES = 100;

export function Machines() {
  const [isJoining, setJoining] = useState(false);
  return (
    <Page
      title="Machines"
      description="Nodes of the platform and machines that joined, with the workers of this organization."
      actions={
        <Button kind="primary" aria-expanded={isJoining} onClick={() => setJoining(!isJoining)}>
          Join machine
        </Button>
      }
    >
      {isJoining && <Joining />}
      <MachineTable />
      <Launches />
      <Storage />
    </Page>
  );
}

function MachineTable() {
  const organization = useOrganization();
  const { isOperator, isAdmin } = usePerson();
  const { data } = useSuspenseQuery(machinesOf(organization));
  const { data: all } = useQuery({ ...nodes, enabled: isOperator });
  const [asked, setAsked] = useState<MachineRow>();
  const rows = rowsOf(data.machines ?? [], all);
  const { shown, field, rest } = useFinder(rows, {
    noun: "machines",
    maxShown: MAX_SHOWN_MACHINES,
    nameOf: ({ name }) => name,
  });
  if (isOperator && all === undefined) {
    return <Loading />;
  }
  if (rows.length === 0) {
    return (
      <Empty inPage title="No workers are running">
        <p>Workers start with the next call, or when a machine joins.</p>
      </Empty>
    );
  }
  const workers = rows.reduce((sum, row) => sum + workersOf(row).workers, 0);
  const mayDrain = ({ node, drainedAs }: MachineRow): boolean =>
    drainedAs !== undefined && (node ? isOperator : isAdmin);
  return (
    <section aria-labelledby="machines" className="machines">
      <h2 id="machines">
        {counted(workers, "worker")} on {counted(rows.length, "machine")}
      </h2>
      {field}
      <DataTable
        label="Machines with their workers"
        isTop
        items={shown}
        keyOf={({ name, node, isAway }) => `${node} ${isAway} ${name}`}
        columns={columnsFor(rows)}
        actions={
          rows.some(mayDrain)
            ? (row) => mayDrain(row) && <Actions of={row} ask={setAsked} />
            : undefined
        }
      />
      {rest}
      {(data.omitted ?? 0) > 0 && (
        <p className="secondary">And {counted(data.omitted ?? 0, "more machine")}.</p>
      )}
      {asked && <ConfirmDrain of={asked} onClose={() => setAsked(undefined)} />}
    </section>
  );
}

/** Those that some machine has a value for. */
function columnsFor(rows: readonly MachineRow[]): readonly Column<MachineRow>[] {
  const where = (has: (row: MachineRow) => boolean, column: Column<MachineRow>) =>
    rows.some(has) ? [column] : [];
  const hasFacts = ({ told }: MachineRow): boolean => told?.facts !== undefined;
  const hasLoad = ({ load }: MachineRow): boolean => load !== undefined;
  const hasGpus = ({ gpus = [], told }: MachineRow): boolean =>
    gpus.length > 0 || (told?.facts?.gpus ?? []).length > 0;
  return [
    { name: "Machine", cell: (row) => <MachineName of={row} /> },
    { name: "State", cell: (row) => <MachineState of={row} /> },
    ...where(hasLoad, { name: "CPU", cell: (row) => <Processors of={row} /> }),
    ...where(hasLoad, { name: "Memory", cell: (row) => <Memory of={row} /> }),
    ...where(hasFacts, { name: "Disk", cell: (row) => <Disk of={row} /> }),
    ...where(hasFacts, { name: "Workers", cell: (row) => <Room of={row} /> }),
    ...where(hasGpus, { name: "GPUs", cell: (row) => <Gpus of={row} /> }),
    { name: "Runs", grows: true, cell: (row) => <Runs of={row} /> },
  ];
}

/** What drains machines and takes them back. Nothing is lost by either, so only a node, which many share, is asked about. */
function useDraining() {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const changed = ({ name, drain }: MachineRow): void => {
    toast(`${isolated(name)} takes ${drain === undefined ? "no new work" : "work again"}`);
    void queryClient.invalidateQueries({ queryKey: ["machines", organization] });
    void queryClient.invalidateQueries({ queryKey: nodes.queryKey });
  };
  const change = ({ node = false, drain, drainedAs = "" }: MachineRow): Promise<unknown> => {
    const target = { organization, machine: drainedAs, isNode: node };
    return drain === undefined ? drainMachine(target) : takeBack(target);
  };
  return { change, changed };
}

interface OfMachine {
  readonly of: MachineRow;
}

function Actions({ of: row, ask }: OfMachine & { ask(row: MachineRow): void }) {
  const { change, changed } = useDraining();
  const toast = useToast();
  const { mutate, isPending } = useMutation({
    mutationFn: () => change(row),
    onSuccess: () => changed(row),
    onError: (err) => toast(messageOf(err)),
  });
  return (
    <Menu
      id={`machine-${row.node ? "node" : "joined"}-${row.name}`}
      label={`Actions for ${row.name}`}
      items={[
        {
          label: row.drain === undefined ? "Drain" : "Take back",
          isDisabled: isPending,
          run: () => (row.node && row.drain === undefined ? ask(row) : mutate()),
        },
      ]}
    />
  );
}

function ConfirmDrain({ of: row, onClose }: OfMachine & { onClose(): void }) {
  const { change, changed } = useDraining();
  return (
    <Confirm
      title={`Drain ${isolated(row.drainedAs)}?`}
      action="Drain"
      run={() => change(row)}
      onDone={() => {
        changed(row);
        onClose();
      }}
      onClose={onClose}
    >
      <p>
        Workers of all organizations on it end once their calls have, and other nodes start theirs.
        Without another node, tasks wait and calls are answered 503 until it is taken back.
      </p>
    </Confirm>
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
        <Share used={used} limit={limit} problem="nearly full">
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
      <h2 id="joining">Join machine</h2>
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
