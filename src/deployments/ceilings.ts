/** Ceilings: the operator's upper limits for the settings of deployments. */

/** The operator's upper limits. */
import type { DeploymentSettings, SettingsUpdate } from "../storage/deployment-settings.ts";

export interface Ceilings {
  /** Workers of one deployment, on all nodes together. */
  readonly workers: number;
  /** Memory of each worker, in MiB. */
  readonly memoryMib: number;
  /** Processor cores of each worker. */
  readonly cpu: number;
  /** Processes that each worker may start besides its own. */
  readonly processes: number;
  /** How long results are kept. */
  readonly retentionMs: number;
  /** Deployments of one organization. */
  readonly deployments: number;
  /** The files of all artifacts and models of one organization together. */
  readonly storageBytes: number;
}

interface Bounded {
  readonly field: string;
  readonly key: "maxWorkers" | "memoryMib" | "cpu" | "processes" | "retentionMs";
  readonly ceiling: keyof Ceilings;
  /** The operator's flag for it. */
  readonly flag: string;
  readonly unit?: string;
}

/** Each setting with its ceiling. */
const BOUNDED: readonly Bounded[] = [
  {
    field: "settings.max_workers",
    key: "maxWorkers",
    ceiling: "workers",
    flag: "--max-workers-per-deployment",
  },
  {
    field: "settings.memory_mib",
    key: "memoryMib",
    ceiling: "memoryMib",
    flag: "--max-memory-per-worker",
  },
  { field: "settings.cpu", key: "cpu", ceiling: "cpu", flag: "--max-cpu-per-worker" },
  {
    field: "settings.processes",
    key: "processes",
    ceiling: "processes",
    flag: "--max-processes-per-worker",
  },
  {
    field: "settings.retention",
    key: "retentionMs",
    ceiling: "retentionMs",
    flag: "--max-retention",
    unit: " ms",
  },
];

/** A message about the first setting above its ceiling; undefined when all are below. */
export function faultOfCeilings(settings: SettingsUpdate, ceilings: Ceilings): string | undefined {
  for (const { field, key, ceiling, flag, unit = "" } of BOUNDED) {
    const [asked, most] = [settings[key], ceilings[ceiling]];
    if (asked !== undefined && asked > most) {
      return `${field} would be ${asked}${unit}, and the operator of this platform allows ${most}${unit} (tessera start ${flag}): ask for less`;
    }
  }
  return undefined;
}

/** Defaults lowered to the operator's ceilings. */
export function lowered(defaults: DeploymentSettings, ceilings: Ceilings): DeploymentSettings {
  return {
    ...defaults,
    maxWorkers: Math.min(defaults.maxWorkers, ceilings.workers),
    memoryMib: Math.min(defaults.memoryMib, ceilings.memoryMib),
    cpu: Math.min(defaults.cpu, ceilings.cpu),
  };
}
