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

interface DeploymentStateProps {
  /** Of all nodes, or of one. */
  readonly deployment: Pick<DeploymentJson, "status" | "statusReason">;
  /** Its workers are up, and what they do fails. Default: that is told elsewhere. */
  readonly isFailing?: boolean | undefined;
}

export function DeploymentState({ deployment, isFailing = false }: DeploymentStateProps) {
  const { status = "DEPLOYMENT_STATUS_UNSPECIFIED", statusReason } = deployment;
  const isBadlyReady = isFailing && status === "DEPLOYMENT_STATUS_READY";
  const [tone, word] = isBadlyReady
    ? (["warning", "failing"] as const)
    : (STATES[status] ?? ["idle", "unknown"]);
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
