/** What launchers do: the machines that deployments want, and why some do not come. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { LaunchJson } from "../../../../../gen/tessera/v1/launcher_pb.js";
import { launchesOf } from "../../api/machines.ts";
import { useOrganization } from "../../api/session.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Status } from "../../ui/status.tsx";

/** Nothing where no launcher is at work. */
export function Launches() {
  const organization = useOrganization();
  const { data } = useQuery(launchesOf(organization));
  const launches = data?.launches ?? [];
  if (launches.length === 0) {
    return null;
  }
  const idle = launches.filter(isIdle);
  const busy = launches.filter((launch) => !isIdle(launch));
  return (
    <section aria-labelledby="launches">
      <h2 id="launches">Launchers</h2>
      {busy.length > 0 && (
        <DataTable
          label="What launchers do"
          items={busy}
          keyOf={({ deployment = "" }) => deployment}
          columns={COLUMNS}
        />
      )}
      {idle.length > 0 && (
        <p className="secondary">
          {idle
            .slice(0, MAX_NAMED_IDLE)
            .map(({ deployment }) => deployment)
            .join(", ")}
          {idle.length > MAX_NAMED_IDLE && ` and ${idle.length - MAX_NAMED_IDLE} more`}
          {idle.length === 1 ? " wants no machine now." : " want no machines now."}
        </p>
      )}
    </section>
  );
}

/** Deployments that are named although nothing is to be seen of them. */
const MAX_NAMED_IDLE = 10;

/** Whether a launcher has nothing to do for a deployment. */
const isIdle = ({
  workersWanted = 0,
  starting = 0,
  joined = 0,
  failed = 0,
  reason,
}: LaunchJson): boolean => workersWanted + starting + joined + failed === 0 && !reason;

const COLUMNS: readonly Column<LaunchJson>[] = [
  { name: "Deployment", cell: (launch) => <Launched of={launch} /> },
  { name: "State", cell: (launch) => <LaunchState of={launch} /> },
  { name: "Workers wanted", cell: ({ workersWanted = 0 }) => workersWanted, isNumber: true },
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
      {reason && (
        <span className="secondary reason" title={reason}>
          {reason}
        </span>
      )}
    </>
  );
}
