/** The workers of a deployment: where each runs and what it does, and how one joins. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type {
  DeploymentJson,
  DeploymentWorkerJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { workersOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { joinCommand, labelsOf } from "../../api/workers.ts";
import { Command } from "../../ui/command.tsx";
import { CopyChip } from "../../ui/copy-button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentState } from "./state.tsx";

export function Workers({ of: deployment }: { readonly of: DeploymentJson }) {
  const organization = useOrganization();
  const { name = "", settings = {} } = deployment;
  const { data } = useQuery(workersOf(organization, name));
  const { workers = [], omitted = 0 } = data ?? {};
  const placements = (deployment.placements ?? []).filter(
    ({ node }) => !workers.some((one) => one.node === node && one.machine === undefined),
  );
  const rows: readonly Row[] = [
    ...workers.map((worker) => ({ worker })),
    ...placements.map((placement) => ({ placement })),
  ];
  return (
    <section aria-labelledby="workers">
      <h2 id="workers">Workers</h2>
      {rows.length > 0 && (
        <DataTable
          label="Workers and their machines"
          items={rows}
          keyOf={({ worker, placement }) => worker?.workerId ?? placement?.node ?? ""}
          columns={[
            { name: "Worker", cell: ({ worker }) => <WorkerId of={worker} /> },
            {
              name: "Runs on",
              cell: ({ worker, placement }) =>
                worker === undefined ? placement?.node : <Machine of={worker} />,
            },
            {
              name: "State",
              cell: ({ worker, placement }) =>
                worker === undefined ? (
                  placement && <DeploymentState deployment={placement} />
                ) : (
                  <State of={worker} />
                ),
            },
            {
              name: "Calls now",
              isNumber: true,
              cell: ({ worker }) => worker && (worker.calls ?? 0),
            },
            {
              name: "Revision",
              cell: ({ worker, placement }) => revisionText((worker ?? placement)?.revision),
            },
            {
              name: "Since",
              cell: ({ worker }) => worker?.startedAt && <Time at={worker.startedAt} />,
            },
          ]}
        />
      )}
      {data !== undefined && rows.length === 0 && <p className="secondary">There are none now.</p>}
      {omitted > 0 && (
        <p className="secondary">And {omitted} more, which their nodes do not tell of.</p>
      )}
      {settings.place !== "WORKER_PLACE_LOCAL" && (
        <>
          <p className="secondary">
            A machine joins with one command and{" "}
            <Link to="/o/$organization/tokens" params={{ organization }} search={{ worker: name }}>
              a worker token
            </Link>
            :
          </p>
          <Command text={joinCommand(name, undefined, labelsOf(deployment))} />
        </>
      )}
    </section>
  );
}

const revisionText = (revision = 0): string => (revision === 0 ? "none" : `r${revision}`);

/** A worker, or a node on which the deployment is and has none. */
interface Row {
  readonly worker?: DeploymentWorkerJson;
  readonly placement?: NonNullable<DeploymentJson["placements"]>[number];
}

/** Their beginnings are alike: they begin with a time. */
const SHOWN_ID_CHARACTERS = 12;

function WorkerId({ of: worker }: { readonly of: DeploymentWorkerJson | undefined }) {
  const { workerId = "" } = worker ?? {};
  return worker === undefined ? (
    <span className="secondary">none</span>
  ) : (
    <CopyChip text={workerId} shown={workerId.slice(-SHOWN_ID_CHARACTERS)} what="the worker's id" />
  );
}

/** The machine, with what it says of itself. */
function Machine({ of: { machine, node, gpus = [] } }: { readonly of: DeploymentWorkerJson }) {
  if (machine === undefined) {
    return (
      <>
        {node}
        <span className="secondary">{["node", ...gpus].join(", ")}</span>
      </>
    );
  }
  const { hostname, platform, labels = {} } = machine;
  const facts = [platform, ...Object.entries(labels).map((label) => label.join("="))];
  return (
    <>
      {hostname || "another machine"}
      <span className="secondary">{facts.filter(Boolean).join(", ")}</span>
    </>
  );
}

function State({ of: { ready = false, fault } }: { readonly of: DeploymentWorkerJson }) {
  if (ready) {
    return <Status tone="good">ready</Status>;
  }
  return (
    <>
      <Status tone={fault ? "bad" : "idle"}>not ready</Status>
      {fault && <span className="secondary">{fault}</span>}
    </>
  );
}
