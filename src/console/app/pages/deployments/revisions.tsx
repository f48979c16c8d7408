/** The revisions of a deployment, and the way back to one. */
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { DeploymentJson, RevisionJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { comparisonOf, revisionsOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { CopyChip } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { between } from "../../ui/duration.ts";
import { Facts } from "../../ui/facts.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { OpenableTable } from "../../ui/openable-table.tsx";
import { bytes } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { Comparison, RolloutLog } from "./comparison.tsx";
import { DeploymentFrame } from "./frame.tsx";
import { DeploymentState } from "./state.tsx";
import "./file-diff.css";

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
  return (
    <>
      <OpenableTable
        label="Revisions"
        items={revisions}
        keyOf={keyOf}
        openAtFirst={revisions[0] && keyOf(revisions[0])}
        ofOpenRow={["base"]}
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
                <Status tone="good">serving</Status>
              ) : revision === deployment.targetRevision ? (
                <DeploymentState deployment={deployment} />
              ) : null,
          },
          {
            ...{ name: "Code", grows: true, narrow: "unnamed" },
            cell: (one) => <Code revision={one} />,
          },
          {
            ...{ name: "Deployed", narrow: "unnamed" },
            cell: ({ createdAt, createdBy }) => (
              <>
                {createdAt !== undefined && <Time at={createdAt} />}
                <span className="secondary">{createdBy}</span>
              </>
            ),
          },
          { name: "Took", cell: (one) => <Rollout of={one} deployment={deployment} /> },
        ]}
        detailsOf={(one) => <Details of={one} revisions={revisions} />}
        actions={(one) =>
          one.revision !== deployment.targetRevision && (
            <Button kind="quiet" onClick={() => setChosen(one)}>
              Roll back to r{one.revision}
            </Button>
          )
        }
      />
      {revisions.length === 1 && (
        <p className="secondary table-note">
          The next deploy makes r{(revisions[0]?.revision ?? 0) + 1}; then you can compare the two
          here, and roll back.
        </p>
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

const keyOf = ({ revision = 0 }: RevisionJson): string => String(revision);

interface DetailsProps {
  readonly of: RevisionJson;
  readonly revisions: readonly RevisionJson[];
}

/** What it changed, where its code is from, and how its roll-out went. */
function Details({ of: one, revisions }: DetailsProps) {
  const { revision = 0, digest = "", files = 0, sizeBytes, source, endpoints = [] } = one;
  const { createdAt, servedAt, secretsConfirmedBy } = one;
  const numbers = revisions.map((other) => other.revision ?? 0);
  const before = numbers.includes(revision - 1) ? revision - 1 : revision;
  const { base = before } = route.useSearch();
  return (
    <>
      <Comparison numbers={numbers} revision={one} base={base} />
      <Facts
        entries={{
          ...(source?.commit && {
            Commit: <CopyChip text={source.commit} what="the commit" />,
          }),
          Artifact: (
            <>
              {source && `${counted(files, "file")}, ${bytes(Number(sizeBytes ?? 0))}, `}
              <CopyChip text={digest} shown={digest.slice(0, 12)} what="the digest" />
            </>
          ),
          Endpoints: endpoints.map((endpoint) => endpoint.name).join(", "),
          ...(createdAt && { Deployed: <ExactTime at={createdAt} /> }),
          ...(servedAt && { "First served": <ExactTime at={servedAt} /> }),
          ...(secretsConfirmedBy && { "Secrets confirmed": `by ${secretsConfirmedBy}` }),
        }}
      />
      <h2>The log of its roll-out</h2>
      <RolloutLog of={one} />
    </>
  );
}

/** What was deployed: its commit, where one was told, or else its artifact. */
function Code({ revision: { digest, files = 0, sizeBytes, source } }: CodeProps) {
  if (source === undefined) {
    return (
      <>
        {counted(files, "file")}, {bytes(Number(sizeBytes ?? 0))}
        <span className="secondary">
          <code>{digest?.slice(0, 12)}</code>, without a commit
        </span>
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

/** What a roll-back would change for callers and workers. */
interface RollbackPreviewProps {
  readonly revision: number;
  /** The revision that it would replace. */
  readonly base: number;
  readonly deployment: DeploymentJson;
}

function RollbackPreview({ revision, base, deployment }: RollbackPreviewProps) {
  const organization = useOrganization();
  const { name = "", settings, workers = 0 } = deployment;
  const { data, error } = useQuery(comparisonOf(organization, name, { revision, base }));
  if (error) {
    return <Notice kind="error">{messageOf(error)}</Notice>;
  }
  if (data === undefined) {
    return <Loading />;
  }
  const { changedFiles = 0, endpoints = [] } = data;
  const of = (kind: string) =>
    endpoints
      .filter((one) => one.kind === kind)
      .map((one) => one.name)
      .join(", ");
  const [gone, back, changed] = [
    of("CHANGE_KIND_REMOVED"),
    of("CHANGE_KIND_ADDED"),
    of("CHANGE_KIND_CHANGED"),
  ];
  const lacksSecrets =
    (settings?.secretNames ?? []).length > 0 && !data.revision?.secretsConfirmedBy;
  return (
    <ul className="rollback-preview">
      <li>
        {changedFiles === 0
          ? "Its code is that which runs now."
          : `${counted(changedFiles, "file")} of the code ${changedFiles === 1 ? "becomes as it was" : "become as they were"}.`}
      </li>
      {gone !== "" && (
        <li>
          Callers of {gone} get 404: revision {revision} does not have it.
        </li>
      )}
      {back !== "" && <li>{back} can be called again.</li>}
      {changed !== "" && <li>{changed} may take or return something else.</li>}
      {lacksSecrets && (
        <li>Nobody has confirmed that this code may have the secrets: it runs without them.</li>
      )}
      <li>
        {workers === 0
          ? "No worker runs now."
          : `${counted(workers, "worker")} will be replaced, and no call fails.`}{" "}
        Settings, variables and secrets stay as they are.
      </li>
    </ul>
  );
}
