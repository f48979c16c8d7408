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
import { DataTable } from "../../ui/data-table.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";

export function Workers({ of: deployment }: { readonly of: DeploymentJson }) {
  const organization = useOrganization();
  const { name = "", settings = {} } = deployment;
  const { data } = useQuery(workersOf(organization, name));
  const { workers = [], omitted = 0 } = data ?? {};
  return (
    <section aria-labelledby="workers">
      <h2 id="workers">Workers</h2>
      {workers.length > 0 && (
        <DataTable
          label="Workers and their machines"
          items={workers}
          keyOf={({ workerId = "" }) => workerId}
          columns={[
            { name: "Worker", cell: ({ workerId }) => workerId },
            { name: "Runs on", cell: (one) => <Machine of={one} /> },
            { name: "State", cell: (one) => <State of={one} /> },
            { name: "Calls", cell: ({ calls = 0 }) => calls },
            { name: "Revision", cell: ({ revision }) => revision || "none" },
            { name: "Since", cell: ({ startedAt }) => startedAt && <Time at={startedAt} /> },
          ]}
        />
      )}
      {data !== undefined && workers.length === 0 && (
        <p className="secondary">There are none now.</p>
      )}
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

/** The machine, with what it says of itself. */
function Machine({ of: { machine, node, gpus = [] } }: { readonly of: DeploymentWorkerJson }) {
  if (machine === undefined) {
    return (
      <>
        {node}
        <span className="secondary">{["a node of the platform", ...gpus].join(", ")}</span>
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
