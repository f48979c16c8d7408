/** What the operator lets deployments ask for at most. */
import type { DeploymentSettings, SettingsUpdate } from "../storage/accounts/organizations.ts";

export interface Ceilings {
  /** Workers of a deployment, on all nodes together. */
  readonly workers: number;
  /** For each worker. */
  readonly memoryMib: number;
  /** Processors for each worker. */
  readonly cpu: number;
  /** Of an organization. */
  readonly deployments: number;
}

/** Those of a new deployment, as the storage makes it. */
export const DEFAULT_SETTINGS: DeploymentSettings = {
  minWorkers: 1,
  maxWorkers: 2,
  memoryMib: 512,
  cpu: 1,
  env: {},
};

/** Each setting with its ceiling, and how operators set that. */
const BOUNDED = [
  { field: "settings.max_workers", key: "maxWorkers", ceiling: "workers", flag: "--max-workers" },
  { field: "settings.memory_mib", key: "memoryMib", ceiling: "memoryMib", flag: "--max-memory" },
  { field: "settings.cpu", key: "cpu", ceiling: "cpu", flag: "--max-cpu" },
] as const;

/** The first setting that is beyond its ceiling, in words; undefined when all are within. */
export function faultOfCeilings(settings: SettingsUpdate, ceilings: Ceilings): string | undefined {
  for (const { field, key, ceiling, flag } of BOUNDED) {
    const [asked, most] = [settings[key], ceilings[ceiling]];
    if (asked !== undefined && asked > most) {
      return `${field} would be ${asked}, and the operator of this platform allows ${most} (tessera start ${flag}): ask for less`;
    }
  }
  return undefined;
}

/** Defaults that nobody chose, as far as the operator allows them. */
export function lowered(defaults: DeploymentSettings, ceilings: Ceilings): DeploymentSettings {
  return {
    ...defaults,
    maxWorkers: Math.min(defaults.maxWorkers, ceilings.workers),
    memoryMib: Math.min(defaults.memoryMib, ceilings.memoryMib),
    cpu: Math.min(defaults.cpu, ceilings.cpu),
  };
}
