/**
 * The status report of a deployment on one node. The storage combines the reports
 * of all nodes into the status that people see.
 *
 * A report is about what is wanted now, the target revision with its settings and secrets. What
 * is known of something else (a roll-out that failed, a crash loop, a worker that waits for room)
 * is not in it: a reader would take it for news of the revision that the report names.
 */
import { type DeploymentStatus, WAITING_FOR_ROOM } from "../deployments/state.ts";
import type { DeploymentReport } from "../storage/hosting/nodes.ts";
import type { DesiredDeployment } from "../storage/hosting/revisions.ts";

/** Last lines of output in a deployment's status: enough to see why a service does not start. */
const MAX_STATUS_OUTPUT_LINES = 20;

/** Reason in a deployment's status. */
const MAX_STATUS_REASON_CHARACTERS = 4_000;

/** A deployment on this node: its desired and its actual state. */
interface StatusFacts {
  readonly record: DesiredDeployment;
  /** Undefined while nothing serves. */
  readonly status: DeploymentStatus | undefined;
  /** True when what serves is what the record wants. */
  readonly isCurrent: boolean;
  /** Why what the record wants could not be brought in; undefined: it was not tried, or serves. */
  readonly failure: RolloutFailure | undefined;
  /** Why the roll-out's first worker waits for room on this node; undefined when it does not. */
  readonly waiting: string | undefined;
  /** What is prepared for the roll-out now; undefined: nothing that takes a while. */
  readonly step?: string | undefined;
}

/** Why a roll-out failed, and the last lines that its workers wrote. */
export interface RolloutFailure {
  readonly message: string;
  readonly lines: readonly string[];
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
    version: record.version,
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
  isCurrent,
  failure,
  waiting,
  step,
}: StatusFacts): Pick<DeploymentReport, "status" | "reason"> {
  if (desiredState === "stopped") {
    return { status: "stopped", reason: "" };
  }
  if (failure !== undefined) {
    const goesOn = running === undefined ? "" : `; revision ${running.revision} goes on serving`;
    const reason = `revision ${targetRevision} could not start: ${failure.message}${goesOn}`;
    return { status: "failed", reason: withLines(reason, failure.lines) };
  }
  if (running === undefined || !isCurrent) {
    const does =
      waiting === undefined
        ? `is starting${step === undefined ? "" : `: ${step}`}`
        : `is ${WAITING_FOR_ROOM}: ${waiting}`;
    return { status: "starting", reason: `revision ${targetRevision} ${does}` };
  }
  return { status: running.state, reason: withLines(running.reason, running.lines) };
}

function withLines(reason: string, lines: readonly string[]): string {
  const last = lines.slice(-MAX_STATUS_OUTPUT_LINES);
  return last.length === 0
    ? reason
    : `${reason}\n\nThe last lines that it wrote:\n${last.join("\n")}`;
}
