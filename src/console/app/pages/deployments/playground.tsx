/** The playground of a deployment, called with the session of the person. */
import { useOrganization } from "../../api/session.ts";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";

export function Playground() {
  const organization = useOrganization();
  const name = useDeploymentName();
  const query = new URLSearchParams({ deployment: `${organization}/${name}` });
  return (
    <DeploymentFrame title="Playground">
      {() => (
        <iframe
          className="playground"
          title={`Playground of ${name}`}
          src={`/console/playground/?${query}`}
        />
      )}
    </DeploymentFrame>
  );
}
