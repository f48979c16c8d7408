/** The frame of a deployment's pages: its name, its state and the way between them. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deploymentOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { Page } from "../../ui/page.tsx";
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
] as const;

/** The name of the deployment in the path. */
export const useDeploymentName = (): string => route.useParams().deployment;

export function DeploymentFrame({
  title,
  children,
}: {
  readonly title: string;
  readonly children: (deployment: DeploymentJson) => ReactNode;
}) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { data: deployment } = useSuspenseQuery(deploymentOf(organization, name));
  return (
    <Page
      title={title === "Overview" ? name : `${name}: ${title.toLowerCase()}`}
      description={<DeploymentState deployment={deployment} />}
      actions={<Actions deployment={deployment} />}
    >
      <nav className="tabs" aria-label={`Pages of ${name}`}>
        {TABS.map(([label, to]) => (
          <Link
            key={to}
            to={to}
            params={{ organization, deployment: name }}
            activeOptions={{ exact: true, includeSearch: false }}
          >
            {label}
          </Link>
        ))}
      </nav>
      {children(deployment)}
    </Page>
  );
}
