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
import { counted } from "../../ui/counted.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { between } from "../../ui/duration.ts";
import { bytes } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { Comparison } from "./comparison.tsx";
import type { ComparisonSearch } from "./comparison-search.ts";
import { DeploymentFrame } from "./frame.tsx";
import { RollbackPreview } from "./rollback-preview.tsx";
import { DeploymentState } from "./state.tsx";

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
                r{revision}
                {rolledBackTo ? (
                  <span className="secondary">brought back r{rolledBackTo}</span>
                ) : null}
              </>
            ),
          },
          {
            name: "State",
            cell: ({ revision }) =>
              revision === serving ? (
                <Status tone="good">Serving</Status>
              ) : revision === deployment.targetRevision ? (
                <DeploymentState deployment={deployment} />
              ) : null,
          },
          { name: "Code", cell: (one) => <Code revision={one} /> },
          {
            name: "Deployed",
            cell: ({ createdAt, createdBy }) => (
              <>
                {createdAt !== undefined && <Time at={createdAt} />}
                <span className="secondary">{createdBy}</span>
              </>
            ),
          },
          { name: "Roll-out", cell: (one) => <Rollout of={one} deployment={deployment} /> },
        ]}
        actions={(one) => {
          const { revision = 0 } = one;
          const hasBase = revisions.some((other) => other.revision === revision - 1);
          return (
            <div className="revision-actions">
              <Link
                className="button quiet"
                to="/o/$organization/deployments/$deployment/revisions"
                params={{ organization, deployment: name }}
                search={{ revision, base: hasBase ? revision - 1 : revision }}
              >
                {hasBase ? `Changes since r${revision - 1}` : "View log"}
              </Link>
              {revision !== deployment.targetRevision && (
                <Button onClick={() => setChosen(one)}>Roll back to r{revision}</Button>
              )}
            </div>
          );
        }}
      />
      {revisions.length === 1 && (
        <p className="secondary">
          The next deploy makes r{(revisions[0]?.revision ?? 0) + 1}; then you can compare the two
          here, and roll back.
        </p>
      )}
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
          <RollbackPreview
            revision={chosen.revision ?? 0}
            base={deployment.targetRevision ?? 0}
            deployment={deployment}
          />
        </Confirm>
      )}
    </>
  );
}

/** What was deployed: its commit, where one was told, or else its artifact. */
function Code({ revision: { digest, files = 0, sizeBytes, source } }: CodeProps) {
  const size = `${counted(files, "file")}, ${bytes(Number(sizeBytes ?? 0))}`;
  if (source === undefined) {
    return (
      <>
        <code>{digest?.slice(0, 12)}</code>
        <span className="secondary">{size}</span>
      </>
    );
  }
  const { commit = "", branch, message, dirty = false } = source;
  return (
    <>
      <bdi>{message || "no message"}</bdi>
      <span className="secondary">
        <code title={commit}>{commit.slice(0, 8)}</code>
        {branch && (
          <>
            {" "}
            on <bdi>{branch}</bdi>
          </>
        )}
        {dirty && ", and more that is not committed"}
      </span>
    </>
  );
}

interface CodeProps {
  readonly revision: RevisionJson;
}

/** How long it took until the revision served, or where it is. */
function Rollout({
  of: { revision, createdAt = "", servedAt },
  deployment,
}: {
  readonly of: RevisionJson;
  readonly deployment: DeploymentJson;
}) {
  if (servedAt !== undefined) {
    return between(createdAt, servedAt, 0);
  }
  return (
    <span className="secondary">
      {revision === deployment.targetRevision ? "under way" : "never served"}
    </span>
  );
}
