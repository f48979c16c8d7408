/** The playground of a deployment, called with the session of the person. */
import { Link, useLocation } from "@tanstack/react-router";
import { useMemo } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { Playground } from "../playground/playground.tsx";
import { ofPlatform } from "../playground/target.ts";
import { DeploymentFrame } from "./frame.tsx";

export function DeploymentPlayground() {
  return (
    <DeploymentFrame title="Playground">
      {(deployment) => <Called deployment={deployment} />}
    </DeploymentFrame>
  );
}

function Called({ deployment }: { readonly deployment: DeploymentJson }) {
  const organization = useOrganization();
  const target = useMemo(
    () => ({
      ...ofPlatform(organization, deployment),
      taskLink: (task: string) => (
        <Link
          to="/o/$organization/deployments/$deployment/tasks/$task"
          params={{ organization, deployment: deployment.name ?? "", task }}
        >
          Open task
        </Link>
      ),
    }),
    [organization, deployment],
  );
  const href = useLocation({ select: (location) => location.href });
  const [, hash] = href.split("#");
  return <Playground target={target} hash={hash === undefined ? "" : `#${hash}`} />;
}
