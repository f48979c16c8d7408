/** The settings of a deployment in requests. */
import type { DeploymentSettings } from "../../../../gen/tessera/v1/deployment_pb.js";
import { variableFault } from "../../../deployments/environment.ts";
import type { FieldViolation } from "../../../errors.ts";
import { MIN_WORKER_MEMORY_BYTES } from "../../../pool/limits.ts";
import type { SettingsUpdate } from "../../../storage/accounts/organizations.ts";
import { refuse } from "../violations.ts";

/** The settings that are set, checked; see `DeploymentSettings` in the proto file. */
export function settingsOf(settings: DeploymentSettings | undefined): SettingsUpdate {
  if (settings === undefined) {
    return {};
  }
  const { minWorkers, maxWorkers, memoryMib, cpu, env } = settings;
  refuse([...faultsOfMemory(memoryMib), ...faultsOfEnvironment("settings.env", env)]);
  return {
    ...(minWorkers !== undefined && { minWorkers }),
    ...(maxWorkers !== undefined && { maxWorkers }),
    ...(memoryMib !== undefined && { memoryMib }),
    ...(cpu !== undefined && { cpu }),
    ...(Object.keys(env).length > 0 && { env }),
  };
}

function faultsOfMemory(memoryMib: number | undefined): FieldViolation[] {
  const least = MIN_WORKER_MEMORY_BYTES / 1024 ** 2;
  return memoryMib !== undefined && memoryMib < least
    ? [
        {
          field: "settings.memory_mib",
          description: `must be at least ${least}: Node needs most of it`,
        },
      ]
    : [];
}

/** Violations of workers' variables beyond the rules of the proto file. */
export function faultsOfEnvironment(
  field: string,
  variables: { readonly [name: string]: string },
): FieldViolation[] {
  return Object.entries(variables).flatMap(([name, value]) => {
    const description =
      variableFault(name) ??
      (value.includes("\0") ? "has a NUL, which no variable can" : undefined);
    return description === undefined ? [] : [{ field: `${field}.${name}`, description }];
  });
}
