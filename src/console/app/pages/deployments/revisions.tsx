/** The revisions of a deployment, and the way back to one. */
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { DeploymentJson, RevisionJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { revisionsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { DeploymentFrame } from "./frame.tsx";

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
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="table-box" aria-label="Revisions" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Revision</th>
            <th scope="col">Code</th>
            <th scope="col">Endpoints</th>
            <th scope="col">By</th>
            <th scope="col">When</th>
            <th scope="col">
              <span className="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {revisions.map((one) => (
            <tr key={one.revision}>
              <th scope="row">
                {one.revision}
                {one.revision === serving && <Status tone="good">serves</Status>}
                {one.rolledBackTo ? (
                  <span className="secondary">brought back {one.rolledBackTo}</span>
                ) : null}
              </th>
              <td>
                <code>{one.digest?.slice(0, 12)}</code>
                <span className="secondary">
                  {one.files} files, {Math.ceil(Number(one.sizeBytes ?? 0) / 1024)} KiB
                </span>
              </td>
              <td>{one.endpoints?.map((endpoint) => endpoint.name).join(", ")}</td>
              <td>{one.createdBy}</td>
              <td>{one.createdAt !== undefined && <Time at={one.createdAt} />}</td>
              <td className="actions">
                {one.revision !== deployment.targetRevision && (
                  <Button kind="quiet" onClick={() => setChosen(one)}>
                    Roll back to {one.revision}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
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
    </section>
  );
}
