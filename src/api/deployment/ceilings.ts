/** Checks of a deployment's settings and environment against the limits of the operator and the system. */

import { sealedBytes } from "../../auth/seal.ts";
import { type Ceilings, faultOfCeilings, lowered } from "../../deployments/ceilings.ts";
import { environmentBytes, MAX_ENVIRONMENT_BYTES } from "../../deployments/environment.ts";
import { networkFault } from "../../deployments/network.ts";
import { hasGpus } from "../../deployments/placement.ts";
import { problem } from "../../errors.ts";
import { type GpuNeed, gpuNeedText } from "../../pool/gpus/ledger.ts";
import type { SandboxLevel } from "../../pool/sandbox/sandbox.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import type { DeploymentRecord } from "../../storage/accounts/organizations.ts";
import type { DeploymentSettings, SettingsUpdate } from "../../storage/deployment-settings.ts";
import { DEFAULT_SETTINGS } from "../../storage/deployment-settings.ts";
import type { NodeStorage } from "../../storage/hosting/nodes.ts";
import type { SecretStorage } from "../../storage/hosting/secrets.ts";

interface SettingsBounds {
  readonly before: DeploymentRecord | undefined;
  readonly service: ServiceManifest;
  readonly ceilings: Ceilings;
}

/**
 * The settings of a deployment before its first revision, which has as many workers as its service
 * asks for. One that was made empty has that number too, unless another was chosen.
 */
function defaultsFor(
  { workers }: ServiceManifest,
  { before, requested }: { before: DeploymentRecord | undefined; requested: SettingsUpdate },
): DeploymentSettings {
  const settings = before?.settings ?? DEFAULT_SETTINGS;
  const isUsual = settings.maxWorkers === DEFAULT_SETTINGS.maxWorkers;
  if (workers === undefined || !isUsual) {
    return settings;
  }
  const { minWorkers = settings.minWorkers } = requested;
  return { ...settings, maxWorkers: Math.max(workers, minWorkers) };
}

/**
 * The settings of a new revision. Defaults are lowered to what the operator
 * allows; a chosen value that is too high throws LIMIT_REACHED.
 */
export function settingsWithin(
  requested: SettingsUpdate,
  { before, service, ceilings }: SettingsBounds,
): SettingsUpdate {
  const isNew = before?.targetRevision === undefined;
  const known = isNew
    ? lowered(defaultsFor(service, { before, requested }), ceilings)
    : before.settings;
  const settings = { ...known, ...requested };
  // Without a setting, the code says how many.
  const processes = settings.processes || (service.processes ?? 0);
  checkCeilings({ ...settings, processes }, ceilings);
  return isNew ? settings : requested;
}

/** Throws SANDBOX_UNAVAILABLE for a network or processes that this node could not hold. */
export function checkSandbox(
  { network, processes = 0 }: SettingsUpdate,
  sandbox: SandboxLevel = "permission",
): void {
  const fault = network && networkFault(network, sandbox);
  if (fault !== undefined) {
    throw problem("SANDBOX_UNAVAILABLE", fault);
  }
  if (processes > 0 && sandbox !== "kernel") {
    throw problem(
      "SANDBOX_UNAVAILABLE",
      `workers that start processes (processes ${processes}) need the kernel's sandbox, which this node does not have: ask the operator to install bubblewrap (tessera start --sandbox kernel)`,
    );
  }
}

/**
 * Throws NO_MATCHING_WORKER where no node has the GPUs that each worker needs, however few others
 * use, and none that joins may bring them. A platform without any waits for a machine that joins.
 */
export async function checkGpus(
  hosting: Pick<NodeStorage, "listNodes">,
  need: GpuNeed | undefined,
  { place, nowMs }: Pick<DeploymentSettings, "place"> & { readonly nowMs: number },
): Promise<void> {
  if (need === undefined || place === "remote") {
    return;
  }
  const nodes = await hosting.listNodes({ nowMs });
  const known = nodes.map(({ nodeId, facts }) => ({ nodeId, gpus: facts?.gpus ?? [] }));
  if (
    known.some(({ gpus }) => hasGpus(gpus, need)) ||
    (place === "any" && known.every(({ gpus }) => gpus.length === 0))
  ) {
    return;
  }
  const there = known.map(({ nodeId, gpus }) => {
    const names = gpus.map(
      ({ name, memoryBytes }) => `${name} with ${Math.round(memoryBytes / 1024 ** 3)} GiB`,
    );
    return `node ${nodeId} has ${gpus.length === 0 ? "none" : names.join(", ")}`;
  });
  const isCut = known.some(({ gpus }) => gpus.some(({ slice }) => slice !== undefined));
  const slices = need.count > 1 && isCut ? " (a program computes on one slice at most)" : "";
  throw problem(
    "NO_MATCHING_WORKER",
    `each worker would need ${gpuNeedText(need)}, which no node has: ${there.join("; ")}${slices}: ask for less (gpus, gpu_memory), or let a machine that has it join (place remote)`,
  );
}

/** Throws LIMIT_REACHED for settings that the operator does not allow. */
export function checkCeilings(settings: SettingsUpdate, ceilings: Ceilings): void {
  const fault = faultOfCeilings(settings, ceilings);
  if (fault !== undefined) {
    throw problem("LIMIT_REACHED", fault);
  }
}

/** The requested environment of workers. */
interface RequestedEnvironment {
  /** Undefined: unchanged. */
  readonly env: SettingsUpdate["env"];
  readonly secrets?: { readonly [name: string]: string };
  readonly removeSecrets?: readonly string[];
}

/** Throws LIMIT_REACHED if the environment, unchanged parts included, is larger than a process can start with. */
export async function checkEnvironment(
  hosting: Pick<SecretStorage, "getSecrets">,
  before: DeploymentRecord | undefined,
  { env = before?.settings.env ?? {}, secrets = {}, removeSecrets = [] }: RequestedEnvironment,
): Promise<void> {
  const kept = before === undefined ? [] : await hosting.getSecrets(before);
  const gone = new Set([...removeSecrets, ...Object.keys(secrets)]);
  const keptBytes = kept
    .filter(({ name }) => !gone.has(name))
    .reduce((sum, { name, sealed }) => sum + name.length + sealedBytes(sealed), 0);
  const bytes = environmentBytes(env) + environmentBytes(secrets) + keptBytes;
  if (bytes > MAX_ENVIRONMENT_BYTES) {
    throw problem(
      "LIMIT_REACHED",
      `the variables and secrets of the deployment would take ${bytes} bytes together, and ${MAX_ENVIRONMENT_BYTES} is the limit: put what is large into a file of the artifact, or remove some`,
    );
  }
}
