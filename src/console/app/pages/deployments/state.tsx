/** The state of a deployment, with its reason. */
import type {
  DeploymentJson,
  DeploymentStatusJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { Status, type Tone } from "../../ui/status.tsx";

const STATES: Partial<Record<DeploymentStatusJson, readonly [Tone, string]>> = {
  DEPLOYMENT_STATUS_STARTING: ["working", "starting"],
  DEPLOYMENT_STATUS_READY: ["good", "ready"],
  DEPLOYMENT_STATUS_DEGRADED: ["warning", "degraded"],
  DEPLOYMENT_STATUS_FAILED: ["bad", "failed"],
  DEPLOYMENT_STATUS_STOPPED: ["idle", "stopped"],
};

/** Of all nodes, or of one. */
export function DeploymentState({
  deployment,
}: {
  readonly deployment: Pick<DeploymentJson, "status" | "statusReason">;
}) {
  const { status = "DEPLOYMENT_STATUS_UNSPECIFIED", statusReason } = deployment;
  const [tone, word] = STATES[status] ?? ["idle", "unknown"];
  const [reason] = statusReason?.split("\n") ?? [];
  return (
    <>
      <Status tone={tone}>{word}</Status>{" "}
      {reason && (
        <span className="secondary reason" title={reason}>
          {reason}
        </span>
      )}
    </>
  );
}
