/** The state of a deployment, with its reason. */
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { Status, type Tone } from "../../ui/status.tsx";
import { type DeploymentWord, stateOf } from "./state-words.ts";

const TONES: Readonly<Record<DeploymentWord, Tone>> = {
  starting: "working",
  ready: "good",
  failing: "bad",
  degraded: "warning",
  failed: "bad",
  stopped: "idle",
  unknown: "idle",
};

interface DeploymentStateProps {
  /** The deployment on all nodes, or on one node, where it has no name. */
  readonly deployment: Pick<DeploymentJson, "name" | "status" | "statusReason">;
  /** The names of the failing deployments. Default: none, so that the state is what the nodes report. */
  readonly failing?: readonly string[];
}

export function DeploymentState({ deployment, failing = [] }: DeploymentStateProps) {
  const word = stateOf(deployment, failing);
  const [reason] = deployment.statusReason?.split("\n") ?? [];
  return (
    <>
      <Status tone={TONES[word]}>{word}</Status>{" "}
      {reason && (
        <span className="secondary reason" title={reason}>
          {reason}
        </span>
      )}
    </>
  );
}
