/** What needs attention: deployments that do not run well, and their tasks. */
import { Link } from "@tanstack/react-router";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { GetTaskStatsResponseJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { useOrganization } from "../../api/session.ts";
import { durationMs, statsIn } from "../../api/task-stats.ts";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { DeploymentState } from "../deployments/state.tsx";

/** A task that has waited longer than this is worth a look. */
const LONG_WAIT_MS = 300_000;

interface Concern {
  readonly deployment: DeploymentJson;
  readonly isUnwell: boolean;
  readonly failed: number;
  /** Undefined while no task waits for long. */
  readonly waitedMs: number | undefined;
}

export function Attention({
  deployments,
  stats,
}: {
  readonly deployments: readonly DeploymentJson[];
  readonly stats: GetTaskStatsResponseJson;
}) {
  const concerns = deployments
    .map((deployment) => concernOf(deployment, stats))
    .filter(({ isUnwell, failed, waitedMs }) => isUnwell || failed > 0 || waitedMs !== undefined);
  if (concerns.length === 0) {
    return <p className="secondary">Nothing: all deployments run well.</p>;
  }
  return (
    <ul className="cards">
      {concerns.map((one) => (
        <li key={one.deployment.deploymentId} className="card">
          <strong>{one.deployment.name}</strong>
          {one.isUnwell && <DeploymentState deployment={one.deployment} />}
          {one.failed > 0 && <Failed name={one.deployment.name ?? ""} count={one.failed} />}
          {one.waitedMs !== undefined && (
            <span>The oldest task has been waiting for {duration(one.waitedMs)}</span>
          )}
        </li>
      ))}
    </ul>
  );
}

function Failed({ name, count }: { readonly name: string; readonly count: number }) {
  const organization = useOrganization();
  return (
    <Link
      to="/o/$organization/tasks"
      params={{ organization }}
      search={{ deployment: name, status: "failure" }}
    >
      {counted(count, "task")} failed in the last hour
    </Link>
  );
}

function concernOf(deployment: DeploymentJson, all: GetTaskStatsResponseJson): Concern {
  const { status, name } = deployment;
  const { failed = 0, oldestQueuedAge } = statsIn(all, name);
  const waitedMs = oldestQueuedAge === undefined ? 0 : durationMs(oldestQueuedAge);
  return {
    deployment,
    isUnwell: status === "DEPLOYMENT_STATUS_FAILED" || status === "DEPLOYMENT_STATUS_DEGRADED",
    failed,
    waitedMs: waitedMs > LONG_WAIT_MS ? waitedMs : undefined,
  };
}
