/** Why calls of a deployment failed in the last hour: a row for each code and endpoint, with what explains it. */
import { Link } from "@tanstack/react-router";
import type { DeploymentTaskStatsJson } from "../../../../../gen/tessera/v1/organization_task_pb.js";
import { capitalized } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { counted } from "../../ui/counted.ts";
import { percent } from "../../ui/quantity.ts";
import { type CallCause, callCausesOf } from "./call-causes.ts";
import "./failures.css";

/** Causes that are listed: the metrics have all failed calls together. */
const MAX_CAUSES = 4;

interface CallFailuresProps {
  readonly deployment: string;
  readonly stats: DeploymentTaskStatsJson;
}

/** Renders nothing without a failed call. */
export function CallFailures({ deployment, stats }: CallFailuresProps) {
  const causes = callCausesOf(stats);
  const left = causes.slice(MAX_CAUSES).reduce((sum, { count }) => sum + count, 0);
  if (causes.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="call-failures">
      <h3 id="call-failures">Why calls failed</h3>
      <ul className="failure-rows">
        {causes.slice(0, MAX_CAUSES).map((cause) => (
          <CauseRow key={`${cause.code} ${cause.endpoint}`} of={cause} deployment={deployment} />
        ))}
      </ul>
      {left > 0 && <p className="secondary">And {counted(left, "call")} for other reasons.</p>}
    </section>
  );
}

interface CauseRowProps {
  readonly of: CallCause;
  readonly deployment: string;
}

function CauseRow({ of: cause, deployment }: CauseRowProps) {
  const { code, text, endpoint, count, calls } = cause;
  return (
    <li>
      <p className="failure-text">
        {capitalized(text)} <code className="secondary">{code}</code>
      </p>
      <p className="secondary">
        {counted(count, "call")} of{" "}
        {endpoint === "" ? "endpoints that do not exist" : <bdi>{endpoint}</bdi>},{" "}
        {percent(count / Math.max(calls, 1))} of its calls
      </p>
      <p className="secondary">
        <Explanation of={cause} deployment={deployment} />
      </p>
    </li>
  );
}

/** The way to what explains the cause. */
function Explanation({ of: { explained, endpoint }, deployment }: CauseRowProps) {
  const params = { organization: useOrganization(), deployment };
  switch (explained) {
    case "arguments":
      return (
        <Link
          to="/o/$organization/deployments/$deployment/playground"
          params={params}
          hash={endpoint === "" ? "" : `/${encodeURIComponent(endpoint)}`}
        >
          {endpoint === "" ? "Its endpoints" : "What it takes"}
        </Link>
      );
    case "tokens":
      return (
        <Link to="/o/$organization/tokens" params={params}>
          API tokens
        </Link>
      );
    case "log":
      return (
        <Link
          to="/o/$organization/deployments/$deployment/log"
          params={params}
          search={{ level: "error,warn", range: "1h" }}
        >
          Errors in the log
        </Link>
      );
    case "metrics":
      return (
        <Link
          to="/o/$organization/deployments/$deployment/metrics"
          params={params}
          search={{ range: "1h" }}
        >
          When it happened
        </Link>
      );
  }
}
