/** The endpoints of a deployment: how each is called and did in the last hour, the way to try it, and its pause. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type {
  DeploymentEndpointJson,
  DeploymentJson,
  LimitsByKeyJson,
  PausedEndpointJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { useOrganization } from "../../api/session.ts";
import { statsOf, taskStatsOf } from "../../api/task-stats.ts";
import { Button } from "../../ui/button.tsx";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { useFinder } from "../../ui/finder.tsx";
import { percent } from "../../ui/quantity.ts";
import { Status } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { type EndpointHour, endpointHour } from "./endpoint-hour.ts";
import { placeOf } from "./place.ts";
import { toneOfFailed } from "./state-words.ts";
import { useAct } from "./use-act.ts";
import "./endpoints.css";

/** Endpoints that are shown at first: a service may have hundreds. */
const MAX_SHOWN_ENDPOINTS = 20;

export function Endpoints({ of: deployment }: { readonly of: DeploymentJson }) {
  const { endpoints = [], pausedEndpoints = [], settings = {} } = deployment;
  const { data } = useQuery(taskStatsOf(useOrganization()));
  const stats = data && statsOf(data, deployment.name);
  const { shown, field, rest } = useFinder(endpoints, {
    noun: "endpoints",
    maxShown: MAX_SHOWN_ENDPOINTS,
    nameOf: ({ name }) => name,
  });
  const dropped = pausedEndpoints.filter((one) =>
    endpoints.every(({ name }) => name !== one.endpoint),
  );
  if (endpoints.length + dropped.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="endpoints">
      <h2 id="endpoints">Endpoints, last hour</h2>
      {field}
      <ul className="endpoint-rows">
        {shown.map((endpoint) => (
          <li key={endpoint.name}>
            <EndpointRow
              deployment={deployment}
              endpoint={endpoint}
              hour={stats && endpointHour(endpoint, stats)}
              paused={pausedEndpoints.find((one) => one.endpoint === endpoint.name)}
              place={
                placeOf(endpoint) === placeOf(settings) ? "" : placeOf(endpoint) || "any machine"
              }
            />
          </li>
        ))}
        {dropped.map((paused) => (
          <li key={paused.endpoint}>
            <strong>
              <bdi>{paused.endpoint}</bdi>
            </strong>
            <span className="secondary">not in the newest revision</span>
            <Paused of={paused} />
            <span className="endpoint-actions">
              <PauseButton endpoint={paused.endpoint ?? ""} isPaused />
            </span>
          </li>
        ))}
      </ul>
      {rest}
    </section>
  );
}

interface EndpointRowProps {
  readonly deployment: DeploymentJson;
  readonly endpoint: DeploymentEndpointJson;
  /** Undefined until it is known. */
  readonly hour: EndpointHour | undefined;
  readonly paused: PausedEndpointJson | undefined;
  /** Where it runs, if elsewhere than the rest. */
  readonly place: string;
}

function EndpointRow({ deployment, endpoint, hour, paused, place }: EndpointRowProps) {
  const organization = useOrganization();
  const { name = "", kind, limitsByKey } = endpoint;
  const limits = limitsByKey ? limitsText(limitsByKey) : "";
  const [badge, call] = callOf(name, kind);
  return (
    <>
      <strong>
        <bdi>{name}</bdi>
      </strong>
      <span className="badge">{badge}</span>
      <code>{call}</code>
      {limits !== "" && <span className="secondary">{limits}</span>}
      {place !== "" && <span className="secondary">runs on {place}</span>}
      {paused && <Paused of={paused} />}
      {hour && <Hour of={hour} noun={badge === "task" ? "task" : "call"} />}
      <span className="endpoint-actions">
        {badge !== "api" && <PauseButton endpoint={name} isPaused={paused !== undefined} />}
        <Link
          className="button"
          to="/o/$organization/deployments/$deployment/playground"
          params={{ organization, deployment: deployment.name ?? "" }}
          hash={`/${encodeURIComponent(name)}`}
        >
          Try it<span className="hidden">: {name}</span>
        </Link>
      </span>
    </>
  );
}

interface HourProps {
  readonly of: EndpointHour;
  readonly noun: string;
}

function Hour({ of: { count, failed, p95Ms }, noun }: HourProps) {
  if (count === 0) {
    return <span className="secondary endpoint-hour">{`no ${noun}s`}</span>;
  }
  const tone = toneOfFailed(failed, count);
  return (
    <span className="secondary endpoint-hour">
      <span>{counted(count, noun)}</span>
      <span className={tone && `share-failed ${tone}`}>
        {failed === 0 ? "none failed" : `${percent(failed / count)} failed`}
      </span>
      <span>{p95Ms === undefined ? "" : `p95 ${duration(p95Ms)}`}</span>
    </span>
  );
}

/** What each key may have and which goes first, in words. */
function limitsText({ concurrency = 0, rate = "", bySeconds = false }: LimitsByKeyJson): string {
  const limits = [concurrency > 0 ? `${concurrency} at a time` : "", rate].filter(
    (one) => one !== "",
  );
  return [
    ...(bySeconds ? ["the key that used the fewest seconds goes first"] : []),
    ...(limits.length > 0 ? [`each key: ${limits.join(", ")}`] : []),
    ...(bySeconds || limits.length > 0 ? [] : ["keys take turns"]),
  ].join("; ");
}

function Paused({ of: { pausedAt, pausedBy } }: { readonly of: PausedEndpointJson }) {
  return (
    <>
      <Status tone="warning">paused</Status>
      <span className="secondary">
        {pausedAt !== undefined && <Time at={pausedAt} />} by {pausedBy}
      </span>
    </>
  );
}

interface PauseButtonProps {
  readonly endpoint: string;
  readonly isPaused: boolean;
}

function PauseButton({ endpoint, isPaused }: PauseButtonProps) {
  const { organization, deployment, act } = useAct("deployment");
  const asked = { organization, deployment, endpoint };
  const change = () =>
    isPaused
      ? act({ run: () => deployments.resumeEndpoint(asked), said: `${endpoint} is resumed` })
      : act({
          run: () => deployments.pauseEndpoint(asked),
          said: `${endpoint} is paused: calls are taken and wait`,
        });
  return (
    <Button onClick={change}>
      {isPaused ? "Resume queue" : "Pause queue"}
      <span className="hidden">: {endpoint}</span>
    </Button>
  );
}

/** What it is in a word, and how it is called. */
function callOf(
  name: string,
  kind: DeploymentEndpointJson["kind"],
): readonly [badge: string, call: string] {
  switch (kind) {
    case "ENDPOINT_KIND_TASK":
      return ["task", `POST /${name}/submit`];
    case "ENDPOINT_KIND_SERVER":
      return ["server", `${name.endsWith("/") ? name : `${name}/`}*`];
    default:
      return ["api", `POST /${name}`];
  }
}
