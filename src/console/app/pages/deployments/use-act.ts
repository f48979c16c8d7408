/** What the menu of something that a deployment has does to it. */
import { useOrganization } from "../../api/session.ts";
import { useActing } from "../../ui/use-acting.ts";
import { useDeploymentName } from "./frame.tsx";

/**
 * Acts on something of the deployment, says so, and has the page read again. `kinds` are the first
 * words of the keys of what is read again, such as `webhooks`.
 */
export function useAct(...kinds: readonly string[]) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const acting = useActing(...kinds.map((kind) => [kind, organization, deployment]));
  return { organization, deployment, ...acting };
}
