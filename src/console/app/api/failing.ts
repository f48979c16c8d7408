/** Whether what a deployment does fails, by what happened in the last hour. */
import type {
  DeploymentTaskStatsJson,
  TaskStatsJson,
} from "../../../../gen/tessera/v1/organization_task_pb.js";

/** Of calls or tasks that failed, this share is worth more than a warning. */
export const MIN_BAD_SHARE = 0.05;

/** Tasks that ended in the last hour. */
export const endedOf = ({ succeeded = 0, failed = 0, cancelled = 0 }: TaskStatsJson): number =>
  succeeded + failed + cancelled;

/** Whether of the calls or of the tasks of the last hour more failed than can be passed over. */
export function isFailing(of: DeploymentTaskStatsJson): boolean {
  const { calls = 0, failedCalls = 0, total = {} } = of;
  const isBad = (failed: number, all: number): boolean =>
    failed > 0 && failed >= all * MIN_BAD_SHARE;
  return isBad(failedCalls, calls) || isBad(total.failed ?? 0, endedOf(total));
}
