/**
 * The settings of a deployment: what each is, where it is stored, what a new deployment has, and
 * how the audit log tells of a change.
 *
 * A new setting is named here, in both `schema.sql`, in the proto file, in
 * `api/deployment/settings.ts` (messages), in `cli/deployment/settings.ts` (flags, `tessera.yaml`),
 * in `console/app/pages/deployments/setting-fields.ts` (the console's form), and where it has its
 * effect.
 */

/** Where the workers of a deployment may connect to. */
export interface NetworkSettings {
  /** `open`: any public address; `allow`: the hosts only. */
  readonly access: "none" | "allow" | "open";
  /** Host rules such as `api.example.com:443`; empty unless access is `allow`. */
  readonly hosts: readonly string[];
}

/** Labels of a machine, or those that a deployment requires, where `*` is any value. */
export interface MachineLabels {
  readonly [name: string]: string;
}

/** Which workers run a deployment: those that nodes start, those that join from other machines, or both. */
export type WorkerPlace = "local" | "remote" | "any";

/** How a deployment runs. */
export interface DeploymentSettings {
  /** Workers on all nodes together, like `maxWorkers`. */
  readonly minWorkers: number;
  readonly maxWorkers: number;
  /** Memory of each worker. */
  readonly memoryMib: number;
  /** Processors of each worker; may be a fraction. */
  readonly cpu: number;
  readonly env: { readonly [name: string]: string };
  readonly network: NetworkSettings;
  /** How long a task should wait for its start at most, which decides on the number of workers. */
  readonly queueTimeMs: number;
  /** How long tasks are kept after their end; 0: as long as their endpoints say. */
  readonly retentionMs: number;
  /** How long a worker may take to load its service; 0: as its code or the operator says. */
  readonly readyTimeoutMs: number;
  /** Processes that a worker may start; 0: as many as its code asks for, or none. */
  readonly processes: number;
  /** GPUs of each worker, below 1 a part of one; 0, with `gpuMemoryMib` 0: as its code says, or none. */
  readonly gpus: number;
  /** Memory that each worker has of a GPU, or of each of its `gpus`; 0: the whole, or its part. */
  readonly gpuMemoryMib: number;
  /** Labels of the machines that may run its workers. */
  readonly requires: MachineLabels;
  readonly place: WorkerPlace;
}

/** Undefined fields stay as they are; `env`, `network` and `requires` are replaced as a whole. */
export type SettingsUpdate = Partial<DeploymentSettings>;

type Stored = string | number;

/** One setting. */
interface Setting<Value> {
  /** Its name in the API and in the audit log. */
  readonly field: string;
  /** Its column in `deployments`. */
  readonly column: string;
  /** What a new deployment has. */
  readonly initial: Value;
  readonly store: (value: Value) => Stored;
  readonly read: (stored: Stored) => Value;
  /** The value as the audit log shows it. */
  readonly audited: (value: Value) => string;
}

const SETTINGS: { readonly [Key in keyof DeploymentSettings]: Setting<DeploymentSettings[Key]> } = {
  minWorkers: plain<number>("min_workers", 1),
  maxWorkers: plain<number>("max_workers", 2),
  memoryMib: plain<number>("memory_mib", 512),
  cpu: plain<number>("cpu", 1),
  network: json<NetworkSettings>("network", {
    initial: { access: "open", hosts: [] },
    audited: ({ access, hosts }) => [access, ...hosts].join(" "),
  }),
  queueTimeMs: time("queue_time", 1_000),
  retentionMs: time("retention", 0),
  readyTimeoutMs: time("ready_timeout", 0),
  processes: plain<number>("processes", 0),
  gpus: plain<number>("gpus", 0),
  gpuMemoryMib: plain<number>("gpu_memory_mib", 0),
  requires: json<MachineLabels>("requires", {
    initial: {},
    audited: (labels) =>
      Object.entries(labels)
        .map((label) => label.join("="))
        .join(" "),
  }),
  place: plain<WorkerPlace>("place", "any"),
  env: {
    // Of variables only the names: their values may be secrets that were set so by mistake.
    ...json<DeploymentSettings["env"]>("env", {
      initial: {},
      audited: (variables) => Object.keys(variables).join(" "),
    }),
    column: "environment",
  },
};

/** All settings, with their names in records. */
const ALL = Object.entries(SETTINGS) as readonly (readonly [
  keyof DeploymentSettings,
  Setting<unknown>,
])[];

/** The settings of a new deployment. */
export const DEFAULT_SETTINGS = built((_, { initial }) => initial);

/** The names in the API, such as `queue_time`, of the settings by their names in records. */
export const SETTING_FIELDS = Object.fromEntries(ALL.map(([key, { field }]) => [key, field])) as {
  readonly [Key in keyof DeploymentSettings]: string;
};

export const SETTING_COLUMNS: readonly string[] = ALL.map(([, { column }]) => column);

/** The values of `SETTING_COLUMNS`, in their order. */
export function storedSettings(settings: DeploymentSettings): Stored[] {
  return ALL.map(([key, { store }]) => store(settings[key]));
}

/** Reads the settings of a row. */
export function readSettings(row: { readonly [column: string]: unknown }): DeploymentSettings {
  return built((_, { read, column }) => read(row[column] as Stored));
}

/** The changed settings with their new values, by their names in the API, for the audit log. */
export function changedSettings(
  before: DeploymentSettings,
  after: DeploymentSettings,
): { readonly [field: string]: string } {
  const changed = ALL.filter(([key, { store }]) => store(before[key]) !== store(after[key]));
  return Object.fromEntries(
    changed.map(([key, { field, audited }]) => [field, audited(after[key])]),
  );
}

function built(
  value: (key: keyof DeploymentSettings, setting: Setting<unknown>) => unknown,
): DeploymentSettings {
  const entries = ALL.map(([key, setting]) => [key, value(key, setting)]);
  return Object.fromEntries(entries) as unknown as DeploymentSettings;
}

/** A number or a word, stored as it is. */
function plain<Value extends Stored>(field: string, initial: Value): Setting<Value> {
  return {
    field,
    column: field,
    initial,
    store: (value) => value,
    read: (stored) => stored as Value,
    audited: String,
  };
}

/** A duration in milliseconds, shown in seconds. */
function time(field: string, initial: number): Setting<number> {
  return {
    ...plain(field, initial),
    column: `${field}_ms`,
    audited: (ms) => `${ms / 1_000}s`,
  };
}

/** A value stored as JSON. */
function json<Value>(
  field: string,
  { initial, audited }: Pick<Setting<Value>, "initial" | "audited">,
): Setting<Value> {
  return {
    field,
    column: field,
    initial,
    store: (value) => JSON.stringify(value),
    read: (stored) => JSON.parse(String(stored)) as Value,
    audited,
  };
}
