/** What needs attention in an organization, worst first: each concern with its cause, and since when. */
import { useQuery } from "@tanstack/react-query";
import { type LinkProps, linkOptions } from "@tanstack/react-router";
import type { AlertJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type {
  DeploymentTaskStatsJson,
  GetTaskStatsResponseJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import type { FailingWebhookJson } from "../../../../../gen/tessera/v1/webhook_pb.js";
import { alertsOf } from "../../api/alerts.ts";
import { answerText } from "../../api/deliveries.ts";
import { capitalized } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { newestFailuresOf } from "../../api/tasks.ts";
import { failingWebhooksOf } from "../../api/webhooks.ts";
import { counted } from "../../ui/counted.ts";
import { duration, durationMs } from "../../ui/duration.ts";
import { percent } from "../../ui/quantity.ts";
import { callCausesOf } from "../deployments/call-causes.ts";
import { endedOf, toneOfFailed } from "../deployments/state-words.ts";
import { failureText } from "../tasks/failure-text.ts";
import { withAlerts } from "./alerted.ts";
import { type Groupable, grouped } from "./grouped.ts";

/** A task that has waited longer than this is worth a look. */
const LONG_WAIT_MS = 300_000;

/** How often it is asked what fires or is pending, while somebody looks. */
const REFRESH_MS = 30_000;

export interface Concern {
  /** Identify it; a row about several things has the keys of all of them. */
  readonly keys: readonly string[];
  /** What it is about. */
  readonly name: string;
  readonly isBad: boolean;
  /** What is wrong, and where that is seen. */
  readonly what: string;
  readonly link: LinkProps;
  /** Why, in the words of what failed; empty where nothing says it. */
  readonly cause: string;
  /** When it happened last, or since when it is so. */
  readonly at?: string | undefined;
}

/** A concern that is one row with others of the same reason. */
interface Seen extends Concern, Groupable {
  /** The text and the link of a row about several. Default: those of the first. */
  readonly together?: (count: number) => Pick<Concern, "what" | "link">;
}

/** For a concern that always has a row of its own. */
const ALONE = { kind: "", reason: "", count: 1 } as const;

/** Five calls, however many deployments there are. */
export function useConcerns(
  deployments: readonly DeploymentJson[],
  { deployments: stats = [] }: GetTaskStatsResponseJson,
): readonly Concern[] {
  const organization = useOrganization();
  const refetchInterval = REFRESH_MS;
  const { data: firing = [] } = useQuery({ ...alertsOf(organization, "firing"), refetchInterval });
  const { data: pending = [] } = useQuery({
    ...alertsOf(organization, "pending"),
    refetchInterval,
  });
  const { data: webhooks = [] } = useQuery({ ...failingWebhooksOf(organization), refetchInterval });
  const hasFailures = stats.some(({ total }) => (total?.failed ?? 0) > 0);
  const { data: failures = [] } = useQuery({
    ...newestFailuresOf(organization),
    enabled: hasFailures,
  });
  const seen: readonly Seen[] = [
    ...deployments.flatMap((one) => ofDeployment(organization, one)),
    ...stats.flatMap((one) => ofTasks(organization, one, failures)),
    ...stats.flatMap((one) => ofCalls(organization, one)),
    ...webhooks.map((one) => ofWebhook(organization, one)),
    ...stats.flatMap((one) => ofWaiting(organization, one)),
  ];
  const rows = grouped(seen, (one, count) => ({ ...one, ...one.together?.(count) }));
  const { fired, left } = withAlerts(rows, [...firing, ...pending]);
  const concerns = [...left.map((alert) => ofAlert(organization, alert)), ...fired];
  return concerns.toSorted((one, other) => Number(other.isBad) - Number(one.isBad));
}

function ofAlert(
  organization: string,
  { id = "", rule, subject, text, since, firedAt }: AlertJson,
): Concern {
  return {
    keys: [`alert ${id}`],
    name: subject ?? "",
    isBad: firedAt !== undefined,
    what: `Alert ${rule} ${firedAt === undefined ? "is pending" : "fires"}`,
    link: linkOptions({ to: "/o/$organization/alerts", params: { organization } }),
    cause: capitalized(text ?? ""),
    at: since,
  };
}

function ofDeployment(organization: string, of: DeploymentJson): readonly Seen[] {
  const { name = "", status, statusReason = "" } = of;
  const isFailed = status === "DEPLOYMENT_STATUS_FAILED";
  if (!isFailed && status !== "DEPLOYMENT_STATUS_DEGRADED") {
    return [];
  }
  const [reason = ""] = statusReason.split("\n");
  return [
    {
      keys: [`deployment ${name}`],
      kind: `deployment ${status}`,
      count: 1,
      name,
      isBad: isFailed,
      what: isFailed ? "Deployment failed" : "Deployment is degraded",
      link: linkOptions({
        to: "/o/$organization/deployments/$deployment",
        params: { organization, deployment: name },
      }),
      cause: reason,
      reason,
      together: (count) => ({
        what: `${counted(count, "deployment")} ${isFailed ? "failed" : "are degraded"}`,
        link: linkOptions({ to: "/o/$organization/deployments", params: { organization } }),
      }),
    },
  ];
}

function ofTasks(
  organization: string,
  { deployment = "", total = {} }: DeploymentTaskStatsJson,
  failures: readonly TaskJson[],
): readonly Seen[] {
  const { failed = 0 } = total;
  if (failed === 0) {
    return [];
  }
  const newest = failures.find((task) => task.deployment === `${organization}/${deployment}`);
  const { endpoint, failure = {}, finishedAt } = newest ?? {};
  const reason = newest === undefined ? "" : failureText(failure);
  const whatOf = (count: number): string => `${counted(count, "task")} failed in the last hour`;
  const search = { status: "failure", since: "1h" } as const;
  return [
    {
      keys: [`tasks ${deployment}`],
      kind: "tasks",
      count: failed,
      name: deployment,
      isBad: toneOfFailed(failed, endedOf(total)) === "bad",
      what: whatOf(failed),
      link: linkOptions({
        to: "/o/$organization/deployments/$deployment/tasks",
        params: { organization, deployment },
        search,
      }),
      cause: reason === "" ? "" : `${endpoint}: ${reason}`,
      reason,
      at: finishedAt,
      together: (count) => ({
        what: whatOf(count),
        link: linkOptions({ to: "/o/$organization/tasks", params: { organization }, search }),
      }),
    },
  ];
}

function ofCalls(organization: string, stats: DeploymentTaskStatsJson): readonly Seen[] {
  const { deployment = "", calls = 0, failedCalls = 0 } = stats;
  if (failedCalls === 0) {
    return [];
  }
  const share = failedCalls / Math.max(calls, 1);
  const [main] = callCausesOf(stats);
  const why = main && ` · ${main.endpoint || "no endpoint"}: ${main.text}`;
  return [
    {
      ...ALONE,
      keys: [`calls ${deployment}`],
      name: deployment,
      isBad: toneOfFailed(failedCalls, calls) === "bad",
      what: `${counted(failedCalls, "call")} failed in the last hour`,
      link: linkOptions({
        to: "/o/$organization/deployments/$deployment",
        params: { organization, deployment },
      }),
      cause: `${percent(share)} of ${counted(calls, "call")}${why ?? ""}`,
    },
  ];
}

function ofWebhook(
  organization: string,
  { deployment = "", webhook = {}, answer = {} }: FailingWebhookJson,
): Seen {
  const { name = "", failures = 0, disabled = false, disabledReason = "" } = webhook;
  const reason = disabled ? disabledReason : answerText(answer);
  return {
    keys: [`webhook ${deployment}/${name}`],
    kind: `webhook ${deployment} ${disabled}`,
    count: 1,
    name: deployment,
    isBad: disabled,
    what: disabled
      ? `Webhook ${name} is disabled`
      : `Webhook ${name} is failing: ${counted(failures, "failure")} in a row`,
    link: linkOptions({
      to: "/o/$organization/deployments/$deployment/webhooks/$webhook",
      params: { organization, deployment, webhook: name },
    }),
    cause: reason,
    reason,
    at: answer.time,
    together: (count) => ({
      what: `${counted(count, "webhook")} are ${disabled ? "disabled" : "failing"}`,
      link: linkOptions({
        to: "/o/$organization/deployments/$deployment/webhooks",
        params: { organization, deployment },
      }),
    }),
  };
}

function ofWaiting(
  organization: string,
  { deployment = "", total = {} }: DeploymentTaskStatsJson,
): readonly Seen[] {
  const { queued = 0, oldestQueuedAge } = total;
  const waitedMs = oldestQueuedAge === undefined ? 0 : durationMs(oldestQueuedAge);
  if (waitedMs <= LONG_WAIT_MS) {
    return [];
  }
  return [
    {
      ...ALONE,
      keys: [`waiting ${deployment}`],
      name: deployment,
      isBad: false,
      what: `The oldest task has waited for ${duration(waitedMs)}`,
      link: linkOptions({
        to: "/o/$organization/deployments/$deployment/tasks",
        params: { organization, deployment },
        search: { status: "queued" },
      }),
      cause: `${counted(queued, "task")} queued`,
    },
  ];
}
