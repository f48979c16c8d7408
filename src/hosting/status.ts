/**
 * The status report of a deployment on one node. The storage combines the reports
 * of all nodes into the status that people see.
 */
import { type DeploymentStatus, WAITING_FOR_ROOM } from "../deployments/state.ts";
import type { DeploymentReport } from "../storage/hosting/nodes.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";

/** Last lines of output in a deployment's status: enough to see why a service does not start. */
const MAX_STATUS_OUTPUT_LINES = 20;

/** Reason in a deployment's status. */
const MAX_STATUS_REASON_CHARACTERS = 4_000;

/** A deployment on this node: its desired and its actual state. */
export interface StatusFacts {
  readonly record: DesiredDeployment;
  /** Undefined while no revision was opened. */
  readonly status: DeploymentStatus | undefined;
  /** Why the target revision could not be prepared, such as unreadable files. */
  readonly fault: string | undefined;
  /** Why a worker waits for room on this node; undefined when none does. */
  readonly waiting: string | undefined;
}

export function reportOf({ record, status: running, ...facts }: StatusFacts): DeploymentReport {
  const { organizationId, deploymentId, targetRevision, desiredState } = record;
  const { ready = 0, revision } = running ?? {};
  const { status, reason } = judge({ record, status: running, ...facts });
  const isServing =
    desiredState === "running" && (ready > 0 || status === "ready" || status === "waiting");
  return {
    organizationId,
    deploymentId,
    targetRevision,
    status,
    reason:
      reason.length > MAX_STATUS_REASON_CHARACTERS
        ? `${reason.slice(0, MAX_STATUS_REASON_CHARACTERS)}…`
        : reason,
    revision: isServing ? revision : undefined,
    workers: ready,
  };
}

function judge({
  record: { desiredState, targetRevision },
  status: running,
  fault,
  waiting,
}: StatusFacts): Pick<DeploymentReport, "status" | "reason"> {
  if (desiredState === "stopped") {
    return { status: "stopped", reason: "" };
  }
  if (fault !== undefined) {
    const goesOn = running?.ready ? `; revision ${running.revision} goes on serving` : "";
    return {
      status: "failed",
      reason: `revision ${targetRevision} could not start: ${fault}${goesOn}`,
    };
  }
  const does = waiting === undefined ? "starting" : `${WAITING_FOR_ROOM}: ${waiting}`;
  const starting = `revision ${targetRevision} is ${does}`;
  if (running === undefined) {
    return { status: "starting", reason: starting };
  }
  const { state, reason, revision, lines } = running;
  const told = withLines(reason, lines);
  if (state === "failed") {
    return { status: "failed", reason: told };
  }
  if (revision !== targetRevision) {
    return { status: "starting", reason: starting };
  }
  return { status: state, reason: told };
}

function withLines(reason: string, lines: readonly string[]): string {
  const last = lines.slice(-MAX_STATUS_OUTPUT_LINES);
  return last.length === 0
    ? reason
    : `${reason}\n\nThe last lines that it wrote:\n${last.join("\n")}`;
}
