/** The settings of a deployment in requests. */
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type DeploymentSettings,
  NetworkAccess,
  type NetworkSettings,
  WorkerPlace,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { variableFault } from "../../deployments/environment.ts";
import type { FieldViolation } from "../../errors.ts";
import { ruleFault } from "../../pool/egress/rules.ts";
import { MIN_WORKER_MEMORY_BYTES } from "../../pool/limits.ts";
import type {
  SettingsUpdate,
  NetworkSettings as Stored,
  WorkerPlace as StoredPlace,
} from "../../storage/accounts/organizations.ts";
import { MIN_RETENTION_MS } from "../task/submission.ts";
import { refuse } from "../violations.ts";

/** The settings that are set, checked; see `DeploymentSettings` in the proto file. */
export function settingsOf(settings: DeploymentSettings | undefined): SettingsUpdate {
  if (settings === undefined) {
    return {};
  }
  const { minWorkers, maxWorkers, memoryMib, cpu, env, network } = settings;
  const { requires, place, queueTime, retention } = settings;
  refuse([
    ...faultsOfMemory(memoryMib),
    ...faultsOfEnvironment("settings.env", env),
    ...faultsOfNetwork(network),
  ]);
  return {
    ...(minWorkers !== undefined && { minWorkers }),
    ...(maxWorkers !== undefined && { maxWorkers }),
    ...(memoryMib !== undefined && { memoryMib }),
    ...(cpu !== undefined && { cpu }),
    ...(Object.keys(env).length > 0 && { env }),
    ...(network !== undefined && {
      network: { access: ACCESS[network.access] ?? "none", hosts: [...network.hosts] },
    }),
    ...(queueTime !== undefined && { queueTimeMs: Math.round(durationMs(queueTime)) }),
    ...(retention !== undefined && { retentionMs: retentionOf(retention) }),
    ...(Object.keys(requires).length > 0 && { requires }),
    ...(place !== undefined && { place: PLACE[place] ?? "any" }),
  };
}

/** 0, or at least a second: a task that is gone as soon as it ends has no result. */
function retentionOf(retention: Duration): number {
  const retentionMs = durationMs(retention);
  if (retentionMs > 0 && retentionMs < MIN_RETENTION_MS) {
    refuse([{ field: "settings.retention", description: "must be 0 or at least 1 s" }]);
  }
  return retentionMs;
}

/** The names of `NetworkAccess` in records; others are refused by the proto file. */
const ACCESS: { readonly [access in NetworkAccess]?: Stored["access"] } = {
  [NetworkAccess.NONE]: "none",
  [NetworkAccess.ALLOW]: "allow",
  [NetworkAccess.OPEN]: "open",
};

/** The names of `WorkerPlace` in records. */
const PLACE: { readonly [place in WorkerPlace]?: StoredPlace } = {
  [WorkerPlace.LOCAL]: "local",
  [WorkerPlace.REMOTE]: "remote",
  [WorkerPlace.ANY]: "any",
};

function faultsOfNetwork(network: NetworkSettings | undefined): FieldViolation[] {
  if (network === undefined) {
    return [];
  }
  const { access, hosts } = network;
  const needsHosts = access === NetworkAccess.ALLOW;
  if (needsHosts !== hosts.length > 0) {
    const description = needsHosts
      ? "are missing: access `allow` needs at least one"
      : "are for access `allow` only";
    return [{ field: "settings.network.hosts", description }];
  }
  return hosts.flatMap((host, index) => {
    const description = ruleFault(host);
    return description === undefined
      ? []
      : [{ field: `settings.network.hosts.${index}`, description }];
  });
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
