/**
 * The settings of deployments on the command line: their flags in `deploy` and `deployment
 * update`, their keys in `tessera.yaml`, and how they are shown.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import type { Option } from "commander";
import {
  type DeploymentSettings,
  DeploymentSettingsSchema,
  NetworkAccess,
  type NetworkSettings,
  WorkerPlace,
} from "../../client/index.ts";
import { MAX_READY_TIMEOUT_MS } from "../building.ts";
import { option, repeatable } from "../command.ts";
import { shortTime } from "../durations.ts";
import { usageError } from "../failure.ts";

/** The given settings; others stay as they are. */
export type GivenSettings = Omit<
  Exclude<MessageInitShape<typeof DeploymentSettingsSchema>, DeploymentSettings>,
  "$typeName" | "$unknown" | "secretNames"
>;

/** The flags of settings, by their names in camel case. */
export interface SettingsFlags {
  readonly authorization?: boolean;
  readonly env?: readonly string[];
  readonly require?: readonly string[];
}

/** One setting, or two that are given together. */
interface Setting {
  /** Its name in `tessera.yaml`. */
  readonly key: string;
  readonly option: Option;
  /** Reads the value of its flag, and that in `tessera.yaml` where it is one text. */
  readonly parse: (text: string) => Parsed<GivenSettings>;
  /** Its line when a deployment is shown. Default: it stands in another one. */
  readonly shown?: readonly [name: string, value: (settings: DeploymentSettings) => string];
}

/** A setting that is a map, with a flag that is repeated. */
interface MapSetting extends Pick<Setting, "key" | "option"> {
  readonly parseAll: (texts: readonly string[]) => GivenSettings;
  /** Empties it. */
  readonly clear: readonly [option: Option, settings: GivenSettings];
}

export const SETTINGS: readonly (Setting | MapSetting)[] = [
  {
    key: "workers",
    option: option(
      "--workers <min..max>",
      "how many workers: 1..4, or 2 for always two (default: 1..2)",
    ),
    parse: parseWorkers,
  },
  {
    key: "memory",
    option: option(
      "--memory <size>",
      "what each worker may use, such as 512Mi or 2Gi (default: 512Mi)",
    ),
    parse: as("memoryMib", parseMemory),
    shown: ["memory", ({ memoryMib }) => (memoryMib ? `${memoryMib}Mi a worker` : "")],
  },
  {
    key: "cpu",
    option: option(
      "--cpu <count>",
      "processors that each worker may use, such as 0.5 (default: 1)",
    ),
    parse: as("cpu", parseCpu),
    shown: ["cpu", ({ cpu }) => (cpu ? `${cpu} a worker` : "")],
  },
  {
    key: "env",
    option: repeatable(
      "--env <NAME=value>",
      "a variable for the workers; they replace all there were",
    ),
    parseAll: (texts) => ({ env: parseVariables(texts) }),
    clear: [option("--clear-env", "the workers have no variables"), { env: {} }],
  },
  {
    key: "network",
    option: option(
      "--network <access>",
      "where workers may connect to: none, open, or allow:api.example.com,*.example.org:443 (default: open)",
    ),
    parse: as("network", parseNetwork),
    shown: ["network", ({ network }) => networkText(network)],
  },
  {
    key: "queue_time",
    option: option(
      "--queue-time <duration>",
      "how long tasks should wait at most before more workers start, such as 500ms, 5s or 10m (default: 1s)",
    ),
    parse: as("queueTime", parseQueueTime),
    shown: [
      "queue time",
      ({ queueTime }) =>
        queueTime ? `at most ${durationMs(queueTime) / 1_000}s, by more workers` : "",
    ],
  },
  {
    key: "retention",
    option: option(
      "--retention <duration>",
      "how long results are kept after their tasks have ended, such as 1h or 30d; 0 leaves it to its code (the default)",
    ),
    parse: as("retention", parseRetention),
    shown: [
      "retention",
      ({ retention }) => {
        const ms = retention === undefined ? 0 : durationMs(retention);
        return ms === 0 ? "as its code says" : `${shortTime(ms)} from the end of a task`;
      },
    ],
  },
  {
    key: "ready_timeout",
    option: option(
      "--ready-timeout <time>",
      "how long the service may take to load, here and on the platform, such as 15m; 0 leaves it to its code, and that to the operator (the default)",
    ),
    parse: as("readyTimeout", parseReadyTimeout),
    shown: [
      "ready timeout",
      ({ readyTimeout }) => {
        const ms = readyTimeout === undefined ? 0 : durationMs(readyTimeout);
        return ms === 0 ? "" : `${shortTime(ms)} to load`;
      },
    ],
  },
  {
    key: "processes",
    option: option(
      "--processes <count>",
      "processes that a worker may start besides its own, such as 8; 0 leaves it to its code (the default)",
    ),
    parse: as("processes", parseProcesses),
    shown: [
      "processes",
      ({ processes = 0 }) => (processes === 0 ? "" : `${processes} besides its own`),
    ],
  },
  {
    key: "gpus",
    option: option(
      "--gpus <count>",
      "GPUs of each worker, such as 1, which it shares with nobody, or 0.5 for half of one; 0 leaves it to its code (the default)",
    ),
    parse: as("gpus", parseGpus),
    shown: ["GPUs", gpusText],
  },
  {
    key: "gpu_memory",
    option: option(
      "--gpu-memory <size>",
      "what each worker has of the memory of a GPU that it shares, or of each of its --gpus, such as 20Gi; 0 is the whole, or its part (the default)",
    ),
    parse: as("gpuMemoryMib", parseGpuMemory),
  },
  {
    key: "requires",
    option: repeatable(
      "--require <label=value>",
      "a label that a machine must have to run its workers, besides those in its code, such as gpu=h200, or gpu=* for any value; they replace all there were",
    ),
    parseAll: (texts) => ({ requires: parseRequirements(texts) }),
    clear: [option("--clear-require", "any machine may run its workers"), { requires: {} }],
  },
  {
    key: "place",
    option: option(
      "--place <place>",
      "where its workers run: local (nodes start them), remote (they join from other machines), or any of both (the default, which leaves it to its code)",
    ),
    parse: as("place", parsePlace),
    shown: ["place", placeText],
  },
];

export const SETTINGS_OPTIONS: readonly Option[] = [
  option("--authorization", "callers need a token with protected endpoint access for it"),
  option("--no-authorization", "anyone who can reach it may call it"),
  ...SETTINGS.map((one) => one.option),
];

/** The options that empty a setting. */
export const CLEAR_OPTIONS: readonly Option[] = SETTINGS.flatMap((one) =>
  "clear" in one ? [one.clear[0]] : [],
);

/** Workers that the command line takes for a deployment; the operator's ceiling may be lower. */
export const MAX_CLI_WORKERS = 100;
/** Memory that the command line takes for each worker. */
const WORKER_MEMORY_MIB = { min: 64, max: 65_536 };
/** Processors that the command line takes for each worker. */
const WORKER_CPU_COUNT = { min: 0.1, max: 64 };

/** Time that tasks wait for workers, which the command line takes for a deployment. */
const MAX_QUEUE_TIME_MS = 3_600_000;
/** Processes that a worker may start, as the platform takes them at most. */
const MAX_CLI_PROCESSES = 1_000;
/** GPUs of a worker, as the platform takes them at most. */
const MAX_CLI_GPUS = 16;
/** Memory of a GPU that a worker may have, as the platform takes it at most. */
const MAX_CLI_GPU_MEMORY_MIB = 1_048_576;
/** Retention of results, which the command line takes; the operator's bound may be lower. */
const MAX_CLI_RETENTION_MS = 365 * 86_400_000;
const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

export const NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Value of a variable or secret. */
export const MAX_VARIABLE_BYTES = 16_384;

/** Parses the flags. Throws a usage error for invalid values, and for one that is set and cleared. */
export function settingsOf(flags: SettingsFlags): GivenSettings {
  const given = flags as unknown as Readonly<Record<string, unknown>>;
  return Object.assign(
    {},
    ...SETTINGS.map((one): GivenSettings => {
      const { long } = one.option;
      const value = given[one.option.attributeName()];
      if ("parse" in one) {
        return value === undefined ? {} : parsed(`${long}`, String(value), one.parse);
      }
      const [clearing, cleared] = one.clear;
      const clears = given[clearing.attributeName()] === true;
      if (clears && value !== undefined) {
        throw usageError(`${long} and ${clearing.long} contradict each other: give one`);
      }
      return clears ? cleared : value === undefined ? {} : one.parseAll(value as string[]);
    }),
  );
}

/** The paths of given settings in a field mask. */
export function pathsOf(settings: GivenSettings): string[] {
  const { field } = DeploymentSettingsSchema;
  return Object.keys(settings).map((name) => `settings.${field[name as keyof typeof field].name}`);
}

/** The lines of a shown deployment. */
export function settingLines(settings: DeploymentSettings | undefined): [string, string][] {
  return SETTINGS.flatMap((one): [string, string][] =>
    "parse" in one && one.shown !== undefined && settings !== undefined
      ? [[one.shown[0], one.shown[1](settings)]]
      : [],
  );
}

/** A value, or a description of what it must be. */
export type Parsed<T> = { readonly value: T } | { readonly fault: string };

/** Parses a value as the one setting. */
function as<Key extends keyof GivenSettings>(
  key: Key,
  parse: (text: string) => Parsed<GivenSettings[Key]>,
): Setting["parse"] {
  return (text) => {
    const read = parse(text);
    return "value" in read ? { value: { [key]: read.value } } : read;
  };
}

function parsed<T>(flag: string, text: string, parse: (text: string) => Parsed<T>): T {
  const read = parse(text);
  if ("fault" in read) {
    throw usageError(`${flag} ${JSON.stringify(text)} ${read.fault}`);
  }
  return read.value;
}

function parseWorkers(
  text: string,
): Parsed<{ readonly minWorkers: number; readonly maxWorkers: number }> {
  const [, min, max = min] = /^(\d{1,3})(?:\.\.(\d{1,3}))?$/.exec(text) ?? [];
  const [minWorkers, maxWorkers] = [Number(min), Number(max)];
  return min !== undefined &&
    minWorkers <= maxWorkers &&
    maxWorkers >= 1 &&
    maxWorkers <= MAX_CLI_WORKERS
    ? { value: { minWorkers, maxWorkers } }
    : {
        fault: `must be a number from 1 to ${MAX_CLI_WORKERS}, or two such as 0..4: 0 starts one when it is called`,
      };
}

/** Parses a size with a unit into mebibytes. */
function parseMemory(text: string): Parsed<number> {
  const [, count, unit] = /^(\d{1,6})(Mi|Gi)B?$/.exec(text) ?? [];
  const mib = Number(count) * (unit === "Gi" ? 1024 : 1);
  return mib >= WORKER_MEMORY_MIB.min && mib <= WORKER_MEMORY_MIB.max
    ? { value: mib }
    : { fault: "must be from 64Mi to 64Gi, such as 512Mi" };
}

function parseCpu(text: string): Parsed<number> {
  const count = /^\d{1,3}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  return count >= WORKER_CPU_COUNT.min && count <= WORKER_CPU_COUNT.max
    ? { value: count }
    : {
        fault: `must be a number from ${WORKER_CPU_COUNT.min} to ${WORKER_CPU_COUNT.max}, such as 0.5`,
      };
}

/** Parses `none`, `open`, or `allow:` with hosts, which the platform checks. */
function parseNetwork(
  text: string,
): Parsed<{ readonly access: NetworkAccess; readonly hosts: string[] }> {
  if (text === "none" || text === "open") {
    const access = text === "none" ? NetworkAccess.NONE : NetworkAccess.OPEN;
    return { value: { access, hosts: [] } };
  }
  const [, list = ""] = /^allow:(.*)$/s.exec(text) ?? [];
  const hosts = list.split(",").map((host) => host.trim());
  return hosts.every((host) => host !== "")
    ? { value: { access: NetworkAccess.ALLOW, hosts } }
    : {
        fault: "must be none, open, or allow: with hosts such as allow:api.example.com,10.0.0.0/8",
      };
}

/** Parses how long tasks should wait at most. */
function parseQueueTime(text: string): Parsed<Duration> {
  const [, count, unit = ""] = /^(\d{1,7}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Math.round(Number(count) * (UNIT_MS[unit] ?? Number.NaN));
  return ms <= MAX_QUEUE_TIME_MS
    ? { value: durationFromMs(ms) }
    : { fault: "must be a duration from 0s to 1h, such as 500ms, 5s or 10m" };
}

/** Parses how long results are kept. */
function parseRetention(text: string): Parsed<Duration> {
  return parseTime(text, { maxMs: MAX_CLI_RETENTION_MS, bounds: "1s to 365d, such as 1h or 30d" });
}

/** Parses how long a service may take to load. */
function parseReadyTimeout(text: string): Parsed<Duration> {
  return parseTime(text, { maxMs: MAX_READY_TIMEOUT_MS, bounds: "1s to 24h, such as 15m" });
}

/** Parses how many processes a worker may start. */
function parseProcesses(text: string): Parsed<number> {
  return /^\d{1,4}$/.test(text) && Number(text) <= MAX_CLI_PROCESSES
    ? { value: Number(text) }
    : { fault: `must be a whole number from 0 to ${MAX_CLI_PROCESSES}` };
}

/** Parses how many GPUs a worker has. */
function parseGpus(text: string): Parsed<number> {
  return /^(?:\d{1,2}|0?\.\d{1,2})$/.test(text) && Number(text) <= MAX_CLI_GPUS
    ? { value: Number(text) }
    : {
        fault: `must be a whole number from 0 to ${MAX_CLI_GPUS}, or a part of one GPU in hundredths, such as 0.5`,
      };
}

/** Parses how much memory of a GPU a worker has, into mebibytes. */
function parseGpuMemory(text: string): Parsed<number> {
  const [, count, unit] = /^(\d{1,7})(Mi|Gi)B?$/.exec(text) ?? [];
  const mib = text === "0" ? 0 : Number(count) * (unit === "Gi" ? 1024 : 1);
  return mib <= MAX_CLI_GPU_MEMORY_MIB
    ? { value: mib }
    : { fault: "must be from 1Mi to 1024Gi, such as 20Gi, or 0" };
}

/** What each worker has of GPUs; empty where the code says it. */
function gpusText({ gpus = 0, gpuMemoryMib = 0 }: DeploymentSettings): string {
  const isPart = gpus > 0 && gpus < 1;
  const parts = [isPart ? `${gpus}` : "", gpuMemoryMib === 0 ? "" : `${gpuMemoryMib}Mi`];
  const share = parts.filter((part) => part !== "").join(" and ");
  const of = isPart || gpus === 0 ? "one" : `each of ${gpus}`;
  const whole = gpus === 0 ? "" : `${gpus} a worker`;
  return share === "" ? whole : `${share} of ${of} a worker`;
}

/** Parses a time of at least a second, or 0. */
function parseTime(
  text: string,
  { maxMs, bounds }: { readonly maxMs: number; readonly bounds: string },
): Parsed<Duration> {
  const [, count, unit = ""] = /^(\d{1,8}(?:\.\d{1,3})?)(s|m|h|d)$/.exec(text) ?? [];
  const ms = text === "0" ? 0 : Math.round(Number(count) * (UNIT_MS[unit] ?? Number.NaN));
  return ms === 0 || (ms >= 1_000 && ms <= maxMs)
    ? { value: durationFromMs(ms) }
    : { fault: `must be a duration from ${bounds}, or 0` };
}

function parsePlace(text: string): Parsed<WorkerPlace> {
  const places = { any: WorkerPlace.ANY, local: WorkerPlace.LOCAL, remote: WorkerPlace.REMOTE };
  return Object.hasOwn(places, text)
    ? { value: places[text as keyof typeof places] }
    : { fault: "must be local, remote or any" };
}

/** What is wrong with a required label; undefined for a valid one. The platform's rule. */
export function faultOfLabel(name: string, value: string): string | undefined {
  if (!/^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/.test(name)) {
    return "must have a name of at most 63 letters, digits, dots, slashes, hyphens and underscores, such as gpu";
  }
  return /^(\*|[A-Za-z0-9]([A-Za-z0-9._-]{0,253}[A-Za-z0-9])?)$/.test(value)
    ? undefined
    : "must have a value of letters, digits, dots, hyphens and underscores, such as h200, or * for any";
}

function parseRequirements(labels: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    labels.map((label) => {
      const [, name = label, value = ""] = /^([^=]*)=(.*)$/s.exec(label) ?? [];
      const fault = faultOfLabel(name, value);
      if (fault !== undefined) {
        throw usageError(`--require ${JSON.stringify(label)} ${fault}`, "such as --require gpu=*");
      }
      return [name, value];
    }),
  );
}

/** Parses variables. Errors do not quote them, because they are often secrets. */
function parseVariables(variables: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    variables.map((variable) => {
      const [, name, value] = /^(\w+)=(.*)$/s.exec(variable) ?? [];
      if (name === undefined || value === undefined || !NAME_PATTERN.test(name)) {
        throw usageError("--env takes NAME=value", "such as --env MODEL=small");
      }
      return [name, checkedValue(`--env ${name}`, value)];
    }),
  );
}

function checkedValue(what: string, value: string): string {
  if (Buffer.byteLength(value) > MAX_VARIABLE_BYTES) {
    throw usageError(`${what} is longer than ${MAX_VARIABLE_BYTES} bytes`);
  }
  return value;
}

function networkText(network: NetworkSettings | undefined): string {
  const access = network === undefined ? "" : (NetworkAccess[network.access] ?? "");
  return [access.toLowerCase(), ...(network?.hosts ?? [])].join(" ");
}

/** Where its workers run: `remote, with gpu=h200`; empty for anywhere. */
export function placeText({
  place,
  requires = {},
}: Partial<Pick<DeploymentSettings, "place" | "requires">> = {}): string {
  const labels = Object.entries(requires).map((label) => label.join("="));
  const where = WorkerPlace[place || WorkerPlace.ANY].toLowerCase();
  const needed = labels.length === 0 ? "" : `with ${labels.join(", ")}`;
  return [...(where === "any" ? [] : [where]), ...(needed === "" ? [] : [needed])].join(", ");
}
