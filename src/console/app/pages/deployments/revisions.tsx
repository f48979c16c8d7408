/** The revisions of a deployment, and the way back to one. */
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type { DeploymentJson, RevisionJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { revisionsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { Comparison } from "./comparison.tsx";
import type { ComparisonSearch } from "./comparison-search.ts";
import { DeploymentFrame } from "./frame.tsx";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/revisions");

export function Revisions() {
  return (
    <DeploymentFrame title="Revisions">
      {(deployment) => <RevisionTable deployment={deployment} />}
    </DeploymentFrame>
  );
}

function RevisionTable({ deployment }: { readonly deployment: DeploymentJson }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const { name = "", revision: serving } = deployment;
  const { data: revisions } = useSuspenseQuery(revisionsOf(organization, name));
  const [chosen, setChosen] = useState<RevisionJson>();
  const compared: ComparisonSearch = route.useSearch();
  return (
    <>
      <DataTable
        label="Revisions"
        items={revisions}
        keyOf={({ revision = 0 }) => String(revision)}
        columns={[
          {
            name: "Revision",
            cell: ({ revision, rolledBackTo }) => (
              <>
                {revision} {revision === serving && <Status tone="good">serves</Status>}
                {rolledBackTo ? (
                  <span className="secondary">brought back {rolledBackTo}</span>
                ) : null}
              </>
            ),
          },
          { name: "Code", cell: (one) => <Code revision={one} /> },
          {
            name: "Endpoints",
            cell: ({ endpoints }) => endpoints?.map((endpoint) => endpoint.name).join(", "),
          },
          { name: "By", cell: ({ createdBy }) => createdBy },
          {
            name: "When",
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
          {
            name: "Changes",
            cell: ({ revision = 0 }) =>
              revisions.some((one) => one.revision === revision - 1) && (
                <Link
                  to="/o/$organization/deployments/$deployment/revisions"
                  params={{ organization, deployment: name }}
                  search={{ revision, base: revision - 1 }}
                >
                  since {revision - 1}
                </Link>
              ),
          },
        ]}
        actions={(one) =>
          one.revision !== deployment.targetRevision && (
            <Button kind="quiet" onClick={() => setChosen(one)}>
              Roll back to {one.revision}
            </Button>
          )
        }
      />
      {compared.revision !== undefined && compared.base !== undefined && (
        <Comparison revisions={revisions} revision={compared.revision} base={compared.base} />
      )}
      {chosen !== undefined && (
        <Confirm
          title={`Roll ${name} back to revision ${chosen.revision}?`}
          action="Roll back"
          run={() =>
            deployments.rollBackDeployment({
              organization,
              deployment: name,
              revision: chosen.revision ?? 0,
            })
          }
          onDone={() => {
            void queryClient.invalidateQueries({ queryKey: ["revisions", organization, name] });
            void queryClient.invalidateQueries({ queryKey: ["deployment", organization, name] });
            toast(`${name} rolls back to revision ${chosen.revision}`);
            setChosen(undefined);
          }}
          onClose={() => setChosen(undefined)}
        >
          <p>Its code runs again as a new revision. Callers notice nothing while it takes over.</p>
        </Confirm>
      )}
    </>
  );
}

function Code({ revision: { digest, files, sizeBytes } }: { readonly revision: RevisionJson }) {
  return (
    <>
      <code>{digest?.slice(0, 12)}</code>
      <span className="secondary">
        {files} files, {Math.ceil(Number(sizeBytes ?? 0) / 1024)} KiB
      </span>
    </>
  );
}
