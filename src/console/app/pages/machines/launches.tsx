/** What launchers do: the machines that deployments want, and why some do not come. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { LaunchJson } from "../../../../../gen/tessera/v1/launcher_pb.js";
import { launchesOf } from "../../api/machines.ts";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Status } from "../../ui/status.tsx";

/** Nothing where no launcher is at work. */
export function Launches() {
  const organization = useOrganization();
  const { data } = useQuery(launchesOf(organization));
  const launches = data?.launches ?? [];
  return (
    launches.length > 0 && (
      <section aria-labelledby="launches">
        <h2 id="launches">Launchers</h2>
        <DataTable
          label="What launchers do"
          items={launches}
          keyOf={({ deployment = "" }) => deployment}
          columns={COLUMNS}
        />
      </section>
    )
  );
}

const COLUMNS: readonly Column<LaunchJson>[] = [
  { name: "Deployment", cell: (launch) => <Launched of={launch} /> },
  { name: "State", cell: (launch) => <LaunchState of={launch} /> },
  { name: "Wanted", cell: ({ workersWanted = 0 }) => counted(workersWanted, "worker") },
  { name: "Starting", cell: ({ starting = 0 }) => starting, isNumber: true },
  { name: "Joined", cell: ({ joined = 0 }) => joined, isNumber: true },
  { name: "Failed", cell: ({ failed = 0 }) => failed, isNumber: true },
];

function Launched({ of: { deployment = "", on, hostname } }: { readonly of: LaunchJson }) {
  const organization = useOrganization();
  return (
    <>
      <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment }}>
        <bdi>{deployment}</bdi>
      </Link>
      <span className="secondary">
        {on}, by <bdi>{hostname}</bdi>
      </span>
    </>
  );
}

function LaunchState({ of }: { readonly of: LaunchJson }) {
  const { failed = 0, starting = 0, reason } = of;
  const [tone, word] =
    failed > 0
      ? (["bad", "failing"] as const)
      : starting > 0
        ? (["working", "starting"] as const)
        : reason
          ? (["warning", "blocked"] as const)
          : (["good", "as wanted"] as const);
  return (
    <>
      <Status tone={tone}>{word}</Status>
      {reason && <span className="secondary">{reason}</span>}
    </>
  );
}
