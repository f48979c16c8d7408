/** The state of a deployment, the same on every page: what its nodes say, and whether what it does fails. */
import type {
  DeploymentJson,
  DeploymentStatusJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import type {
  DeploymentTaskStatsJson,
  GetTaskStatsResponseJson,
  TaskStatsJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { counted } from "../../ui/counted.ts";

/** Of calls or tasks that failed, this share is worth more than a warning. */
const MIN_BAD_SHARE = 0.05;

const WORDS = {
  DEPLOYMENT_STATUS_STARTING: "starting",
  DEPLOYMENT_STATUS_READY: "ready",
  DEPLOYMENT_STATUS_DEGRADED: "degraded",
  DEPLOYMENT_STATUS_FAILED: "failed",
  DEPLOYMENT_STATUS_STOPPED: "stopped",
  DEPLOYMENT_STATUS_UNSPECIFIED: "unknown",
} as const satisfies Record<DeploymentStatusJson, string>;

/** A deployment is failing whose workers are up while what they do fails. */
export type DeploymentWord = (typeof WORDS)[DeploymentStatusJson] | "failing";

/** The states that are counted beside those that are ready, worst first. */
const COUNTED: readonly DeploymentWord[] = ["failed", "failing", "degraded", "starting", "stopped"];

/** Tasks that ended in the last hour. */
export const endedOf = ({ succeeded = 0, failed = 0, cancelled = 0 }: TaskStatsJson): number =>
  succeeded + failed + cancelled;

/** How bad it is that so many of all failed; undefined where none did. */
export function toneOfFailed(failed: number, all: number): "bad" | "warning" | undefined {
  if (failed === 0) {
    return undefined;
  }
  return failed >= all * MIN_BAD_SHARE ? "bad" : "warning";
}

/** The names of the deployments of whose calls or tasks of the last hour more failed than can be passed over. */
export const failingIn = ({ deployments = [] }: GetTaskStatsResponseJson): readonly string[] =>
  deployments.filter(isFailing).map(({ deployment = "" }) => deployment);

const isFailing = ({ calls = 0, failedCalls = 0, total = {} }: DeploymentTaskStatsJson): boolean =>
  toneOfFailed(failedCalls, calls) === "bad" ||
  toneOfFailed(total.failed ?? 0, endedOf(total)) === "bad";

/** The state of a deployment in a word, where `failing` are the names of those that fail. */
export function stateOf(
  { name = "", status = "DEPLOYMENT_STATUS_UNSPECIFIED" }: Pick<DeploymentJson, "name" | "status">,
  failing: readonly string[],
): DeploymentWord {
  const word = WORDS[status] ?? "unknown";
  return word === "ready" && failing.includes(name) ? "failing" : word;
}

/** Such as `2 of 3 deployments ready, 1 failing`. */
export function statesText(
  deployments: readonly DeploymentJson[],
  failing: readonly string[],
): string {
  const byWord = Map.groupBy(deployments, (one) => stateOf(one, failing));
  const numberOf = (word: DeploymentWord): number => byWord.get(word)?.length ?? 0;
  return [
    `${numberOf("ready")} of ${counted(deployments.length, "deployment")} ready`,
    ...COUNTED.filter((word) => numberOf(word) > 0).map((word) => `${numberOf(word)} ${word}`),
  ].join(", ");
}
