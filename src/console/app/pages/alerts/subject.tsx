/** What an alert is about, with the way to where one sees more of it. */
import { Link } from "@tanstack/react-router";
import type { AlertJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { useOrganization } from "../../api/session.ts";
import { Status } from "../../ui/status.tsx";

/** The tasks that alerts of a kind are about, by their state. */
const TASKS = {
  ALERT_KIND_FAILURES: "failure",
  ALERT_KIND_OLDEST_TASK_WAITS: "queued",
} as const satisfies Partial<Record<NonNullable<AlertJson["kind"]>, string>>;

/** While it fires, its mark is before it. */
export function Subject({ of: alert }: { readonly of: AlertJson }) {
  return (
    <span className="alert-subject">
      {alert.clearedAt === undefined && <Status tone="bad">{""}</Status>}
      <Where of={alert} />
    </span>
  );
}

function Where({ of: { kind, subject = "" } }: { readonly of: AlertJson }) {
  const organization = useOrganization();
  // Such as `deployment ocr`, `webhook app of ocr`: the names of both are DNS labels.
  const [what, name = "", , of = ""] = subject.split(" ");
  const params = { organization, deployment: name };
  switch (what) {
    case "deployment":
      return kind === "ALERT_KIND_FAILURES" || kind === "ALERT_KIND_OLDEST_TASK_WAITS" ? (
        <Link
          to="/o/$organization/deployments/$deployment/tasks"
          params={params}
          search={{ status: TASKS[kind] }}
        >
          {subject}
        </Link>
      ) : (
        <Link
          to={
            kind === "ALERT_KIND_WORKER_RESTARTS"
              ? "/o/$organization/deployments/$deployment/log"
              : "/o/$organization/deployments/$deployment"
          }
          params={params}
        >
          {subject}
        </Link>
      );
    case "webhook":
      return (
        <Link
          to="/o/$organization/deployments/$deployment/webhooks/$webhook"
          params={{ organization, deployment: of, webhook: name }}
        >
          {subject}
        </Link>
      );
    case "token":
    case "node":
      return (
        <Link
          to={what === "token" ? "/o/$organization/tokens" : "/o/$organization/machines"}
          params={{ organization }}
        >
          {subject}
        </Link>
      );
    default:
      return subject;
  }
}
