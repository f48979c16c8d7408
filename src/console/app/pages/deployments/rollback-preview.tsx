/** What a roll-back would change for callers and workers. */
import { useQuery } from "@tanstack/react-query";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { comparisonOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import "./file-diff.css";

interface RollbackPreviewProps {
  readonly revision: number;
  /** The revision that it would replace. */
  readonly base: number;
  readonly deployment: DeploymentJson;
}

export function RollbackPreview({ revision, base, deployment }: RollbackPreviewProps) {
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
