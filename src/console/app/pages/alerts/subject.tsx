/** What an alert is about, with the way to where one sees more of it. */
import { Link } from "@tanstack/react-router";
import type { AlertJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { alertSubjectOf } from "../../api/alert-subject.ts";
import { useOrganization } from "../../api/session.ts";
import { Status } from "../../ui/status.tsx";

/** The tasks that alerts of a kind are about, by their state. */
const TASKS: Readonly<Record<string, "failure" | "queued">> = {
  ALERT_KIND_FAILURES: "failure",
  ALERT_KIND_OLDEST_TASK_WAITS: "queued",
};

/** The pages of what is no deployment's. */
const PAGES = {
  budget: "/o/$organization/usage",
  token: "/o/$organization/tokens",
  node: "/o/$organization/machines",
} as const;

/** While it fires or is pending, its mark is before it. */
export function Subject({ of: alert }: { readonly of: AlertJson }) {
  return (
    <span className="alert-subject">
      {alert.clearedAt === undefined && (
        <Status tone={alert.firedAt === undefined ? "warning" : "bad"}>{""}</Status>
      )}
      <Where of={alert} />
    </span>
  );
}

function Where({ of: { kind, subject = "" } }: { readonly of: AlertJson }) {
  const organization = useOrganization();
  const { what, name, of } = alertSubjectOf(subject);
  const params = { organization, deployment: name };
  const status = kind && TASKS[kind];
  switch (what) {
    case "deployment":
      return status !== undefined ? (
        <Link
          to="/o/$organization/deployments/$deployment/tasks"
          params={params}
          search={{ status }}
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
    case "budget":
    case "token":
    case "node":
      return (
        <Link to={PAGES[what]} params={{ organization }}>
          {subject}
        </Link>
      );
    default:
      return subject;
  }
}
