/**
 * Which `network` settings a node can enforce. Only a sandbox of the kernel takes
 * the network from a worker; with Node's permission model alone, a service
 * connects wherever the machine does.
 */
import type { SandboxLevel } from "../pool/sandbox/sandbox.ts";
import type { NetworkSettings } from "../storage/deployment-settings.ts";

/** Why a node of this level does not run a deployment with the setting; undefined when it does. */
export function networkFault(
  { access }: NetworkSettings,
  level: SandboxLevel = "permission",
): string | undefined {
  return access === "open" || level === "kernel"
    ? undefined
    : `network ${access} needs the kernel's sandbox, which this node does not have: set network to open, or ask the operator to install bubblewrap (tessera start --sandbox kernel)`;
}
