/** The deployments of an organization. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { StorageUseJson } from "../../../../../gen/tessera/v1/organization_pb.js";
import { useOrganization } from "../../api/session.ts";
import { storageUseOf } from "../../api/storage.ts";
import { statsIn, taskStatsOf } from "../../api/task-stats.ts";
import { useDeployments } from "../../api/use-deployments.ts";
import { Command } from "../../ui/command.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Page } from "../../ui/page.tsx";
import { bytes } from "../../ui/quantity.ts";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { Time } from "../../ui/time.tsx";
import { DeploymentState } from "./state.tsx";

export function Deployments() {
  const organization = useOrganization();
  const { deployments, stream } = useDeployments(organization);
  const { data: stats } = useQuery(taskStatsOf(organization));
  const { data: storage } = useQuery(storageUseOf(organization));
  return (
    <Page
      title="Deployments"
      description="Services that this organization runs here."
      actions={<StreamStatus state={stream} />}
    >
      {deployments.length === 0 ? (
        <Empty inPage title="Nothing is deployed yet">
          <p>In the folder of a service:</p>
          <Command text={`npx tessera-platform cloud login --endpoint ${location.origin}`} />
          <Command text="npx tessera-platform deploy service.ts" />
        </Empty>
      ) : (
        <DataTable
          label="Deployments"
          items={deployments}
          keyOf={({ deploymentId = "" }) => deploymentId}
          columns={[
            { name: "Name", cell: ({ name = "" }) => <DeploymentLink name={name} /> },
            { name: "State", cell: (one) => <DeploymentState deployment={one} /> },
            { name: "Revision", cell: ({ revision }) => revision || "none" },
            { name: "Workers", cell: workersOf },
            { name: "Waiting", cell: ({ name }) => stats && (statsIn(stats, name).queued ?? 0) },
            { name: "Running", cell: ({ name }) => stats && (statsIn(stats, name).running ?? 0) },
            {
              name: "Failed (1 h)",
              cell: ({ name }) => stats && (statsIn(stats, name).failed ?? 0),
            },
            {
              name: "Access",
              cell: ({ authorization }) => (authorization ? "Protected" : "Public"),
            },
            {
              name: "Storage",
              cell: ({ name }) => {
                const own = storage?.deployments?.find(({ deployment }) => deployment === name);
                return own && bytes(Number(own.bytes)).replace(" ", "\u00a0");
              },
            },
            {
              name: "Changed",
              cell: ({ updatedAt }) =>
                updatedAt !== undefined && <Time at={updatedAt} style="narrow" />,
            },
          ]}
        />
      )}
      {storage !== undefined && <Storage use={storage} />}
    </Page>
  );
}

/** How much of its storage the organization has used. */
function Storage({ use }: { readonly use: StorageUseJson }) {
  const [used, limit, unused] = [use.usedBytes, use.limitBytes, use.unusedBytes].map((text) =>
    bytes(Number(text ?? 0)),
  );
  return (
    <section aria-labelledby="storage">
      <h2 id="storage">Storage</h2>
      <Facts
        entries={{
          Used: `${used} of ${limit}`,
          "Of models": bytes(Number(use.modelBytes ?? 0)),
          "Of no revision": `${unused}, deleted when no deploy needs it`,
        }}
      />
    </section>
  );
}

function DeploymentLink({ name }: { readonly name: string }) {
  const organization = useOrganization();
  return (
    <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment: name }}>
      {name}
    </Link>
  );
}

/** Such as `1 of 1–4`. */
const workersOf = ({ workers = 0, settings }: DeploymentJson): string =>
  `${workers} of ${settings?.minWorkers ?? 0}–${settings?.maxWorkers ?? 0}`.replaceAll(
    " ",
    "\u00a0",
  );
