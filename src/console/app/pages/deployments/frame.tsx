/** The frame of a deployment's pages: its name, its state and the way between them. */
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { useDeployment } from "../../api/use-deployments.ts";
import { Empty } from "../../ui/empty.tsx";
import { Page } from "../../ui/page.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { Strip } from "../../ui/strip.tsx";
import { Actions } from "./actions.tsx";
import { DeploymentState } from "./state.tsx";
import "./deployment.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment");

const TABS = [
  ["Overview", "/o/$organization/deployments/$deployment"],
  ["Tasks", "/o/$organization/deployments/$deployment/tasks"],
  ["Playground", "/o/$organization/deployments/$deployment/playground"],
  ["Revisions", "/o/$organization/deployments/$deployment/revisions"],
  ["Metrics", "/o/$organization/deployments/$deployment/metrics"],
  ["Log", "/o/$organization/deployments/$deployment/log"],
  ["Schedules", "/o/$organization/deployments/$deployment/schedules"],
  ["Webhooks", "/o/$organization/deployments/$deployment/webhooks"],
  ["Settings", "/o/$organization/deployments/$deployment/settings"],
] as const;

/** The name of the deployment in the path. */
export const useDeploymentName = (): string => route.useParams().deployment;

export function DeploymentFrame({
  title,
  hasStream = false,
  children,
}: {
  readonly title: string;
  /** The page follows a stream of its own. */
  readonly hasStream?: boolean;
  readonly children: (deployment: DeploymentJson) => ReactNode;
}) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { deployment, isDeleted, stream } = useDeployment(organization, name, { hasStream });
  if (isDeleted) {
    return <Deleted name={name} />;
  }
  return (
    <Page
      title={name}
      part={title === "Overview" ? undefined : title.toLowerCase()}
      description={<DeploymentState deployment={deployment} />}
      actions={
        <>
          {!hasStream && <StreamStatus state={stream} />}
          <Actions deployment={deployment} />
        </>
      }
    >
      <Strip className="tabs" label={`Pages of ${name}`} current={title}>
        {TABS.map(([label, to]) => (
          <Link
            key={to}
            to={to}
            params={{ organization, deployment: name }}
            activeOptions={{ exact: label === "Overview", includeSearch: false }}
          >
            {label}
          </Link>
        ))}
      </Strip>
      {children(deployment)}
    </Page>
  );
}

/** In the place of a page whose deployment goes while somebody looks. */
function Deleted({ name }: { readonly name: string }) {
  const organization = useOrganization();
  return (
    <Empty title={`${name} was deleted`}>
      <p>Its revisions, its log and the results of its tasks went with it.</p>
      <Link to="/o/$organization/deployments" params={{ organization }} className="button">
        See the deployments that are left
      </Link>
    </Empty>
  );
}
