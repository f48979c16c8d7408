/** The state of a deployment, the same on every page: what its nodes report, and whether its calls and tasks fail. */
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

/** From this share of failed calls or tasks on, it is more than a warning. */
const MIN_BAD_SHARE = 0.05;

const WORDS = {
  DEPLOYMENT_STATUS_STARTING: "starting",
  DEPLOYMENT_STATUS_READY: "ready",
  DEPLOYMENT_STATUS_DEGRADED: "degraded",
  DEPLOYMENT_STATUS_FAILED: "failed",
  DEPLOYMENT_STATUS_STOPPED: "stopped",
  DEPLOYMENT_STATUS_UNSPECIFIED: "unknown",
} as const satisfies Record<DeploymentStatusJson, string>;

/** A deployment is failing while its workers are up and too many of its calls or tasks fail. */
export type DeploymentWord = (typeof WORDS)[DeploymentStatusJson] | "failing";

/** The states in which something is wrong, worst first. */
const WRONG: readonly DeploymentWord[] = ["failed", "failing", "degraded"];

/** The states that are counted beside those that are ready. */
const COUNTED: readonly DeploymentWord[] = [...WRONG, "starting", "stopped"];

/** Tasks that ended in the last hour. */
export const endedOf = ({ succeeded = 0, failed = 0, cancelled = 0 }: TaskStatsJson): number =>
  succeeded + failed + cancelled;

/** The tone of a number of failures among all calls or tasks; undefined without failures. */
export function toneOfFailed(failed: number, all: number): "bad" | "warning" | undefined {
  if (failed === 0) {
    return undefined;
  }
  return failed >= all * MIN_BAD_SHARE ? "bad" : "warning";
}

/** The names of the deployments that had too many failed calls or tasks in the last hour. */
export const failingIn = ({ deployments = [] }: GetTaskStatsResponseJson): readonly string[] =>
  deployments.filter(isFailing).map(({ deployment = "" }) => deployment);

const isFailing = ({ calls = 0, failedCalls = 0, total = {} }: DeploymentTaskStatsJson): boolean =>
  toneOfFailed(failedCalls, calls) === "bad" ||
  toneOfFailed(total.failed ?? 0, endedOf(total)) === "bad";

/** What became of the calls and tasks of the last hour, such as `4 of 9 tasks failed in the last hour`. */
export function hourText({
  calls = 0,
  failedCalls = 0,
  total = {},
}: DeploymentTaskStatsJson): string {
  const parts = [
    [failedCalls, calls, "call"],
    [total.failed ?? 0, endedOf(total), "task"],
  ] as const;
  const failed = parts.filter(([bad]) => bad > 0);
  const all = parts.filter(([, count]) => count > 0).map(([, count, noun]) => counted(count, noun));
  return failed.length > 0
    ? `${failed.map(([bad, count, noun]) => `${bad.toLocaleString("en")} of ${counted(count, noun)}`).join(" and ")} failed in the last hour`
    : all.length > 0
      ? `${all.join(" and ")} in the last hour, none failed`
      : "no calls in the last hour";
}

/** The state of a deployment in a word; `failing` are the names of the failing deployments. */
export function stateOf(
  { name = "", status = "DEPLOYMENT_STATUS_UNSPECIFIED" }: Pick<DeploymentJson, "name" | "status">,
  failing: readonly string[],
): DeploymentWord {
  const word = WORDS[status] ?? "unknown";
  return word === "ready" && failing.includes(name) ? "failing" : word;
}

/** The deployments that need somebody, the worst first; all others stay in their order. */
export function worstFirst(
  deployments: readonly DeploymentJson[],
  failing: readonly string[],
): readonly DeploymentJson[] {
  const rankOf = (one: DeploymentJson): number => {
    const rank = WRONG.indexOf(stateOf(one, failing));
    return rank === -1 ? WRONG.length : rank;
  };
  return deployments.toSorted((one, other) => rankOf(one) - rankOf(other));
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
