/** The endpoints of a deployment: how each is called, and the way to try it. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type {
  DeploymentEndpointJson,
  DeploymentJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { placeOf } from "./place.ts";
import "./endpoints.css";

/** Endpoints that are shown at first: a service may have hundreds. */
const MAX_SHOWN_ENDPOINTS = 20;

export function Endpoints({ of: deployment }: { readonly of: DeploymentJson }) {
  const { endpoints = [], settings = {} } = deployment;
  const [isWhole, setWhole] = useState(false);
  if (endpoints.length === 0) {
    return null;
  }
  const shown = isWhole ? endpoints : endpoints.slice(0, MAX_SHOWN_ENDPOINTS);
  return (
    <section aria-labelledby="endpoints">
      <h2 id="endpoints">Endpoints</h2>
      <ul className="endpoint-rows">
        {shown.map((endpoint) => (
          <li key={endpoint.name}>
            <EndpointRow
              deployment={deployment}
              endpoint={endpoint}
              place={
                placeOf(endpoint) === placeOf(settings) ? "" : placeOf(endpoint) || "any machine"
              }
            />
          </li>
        ))}
      </ul>
      {shown.length < endpoints.length && (
        <p>
          <Button onClick={() => setWhole(true)}>Show all {endpoints.length}</Button>
        </p>
      )}
    </section>
  );
}

interface EndpointRowProps {
  readonly deployment: DeploymentJson;
  readonly endpoint: DeploymentEndpointJson;
  /** Where it runs, if elsewhere than the rest. */
  readonly place: string;
}

function EndpointRow({ deployment, endpoint, place }: EndpointRowProps) {
  const organization = useOrganization();
  const { name = "", kind } = endpoint;
  const [badge, call] = callOf(name, kind);
  return (
    <>
      <strong>
        <bdi>{name}</bdi>
      </strong>
      <span className="badge">{badge}</span>
      <code>{call}</code>
      {place !== "" && <span className="secondary">runs on {place}</span>}
      <Link
        className="button"
        to="/o/$organization/deployments/$deployment/playground"
        params={{ organization, deployment: deployment.name ?? "" }}
        hash={`/${encodeURIComponent(name)}`}
      >
        Try it<span className="hidden">: {name}</span>
      </Link>
    </>
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
