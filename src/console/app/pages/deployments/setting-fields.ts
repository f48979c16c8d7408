/** The settings of a deployment as fields of a form: their texts, and what these mean in a request. */
import type {
  DeploymentSettingsJson,
  NetworkAccessJson,
  WorkerPlaceJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";

/** One setting. */
export interface SettingField {
  /** Its name in requests, in camel case, and in a form. */
  readonly name: keyof DeploymentSettingsJson;
  /** As violations name it. */
  readonly path: string;
  readonly label: string;
  readonly hint: string;
  readonly group: "Scale" | "Each worker" | "Where it runs" | "Environment" | "Results";
  readonly kind: "number" | "text" | "pairs" | "choice" | "network";
  /** The unit of a number, which is written with it. */
  readonly unit?: "MiB";
  /** What holds where neither a person nor the code sets it, in words; see `defaultOf`. */
  readonly standard: string;
  /** An empty field has the default, which the code may set, and is written as zero. Default: it has a value. */
  readonly mayBeEmpty?: boolean;
  /** The default if another GPU setting of the deployment overrides the code. */
  readonly besideGpus?: string;
  /** An example of pairs, `NAME=value`, which an empty row shows. */
  readonly example?: string;
  /** Of a number. */
  readonly min?: number;
  readonly step?: number;
  /** Of a choice: each value with its words. */
  readonly choices?: readonly (readonly [value: string, words: string])[];
  /** A change replaces the workers, one after another. */
  readonly replacesWorkers: boolean;
  readonly read: (settings: DeploymentSettingsJson) => string;
  /** Throws a `TextFault` for a text that means nothing. */
  readonly write: (text: string) => DeploymentSettingsJson;
}

/** A text that is no value of its setting; its message stands beside the field. */
export class TextFault extends Error {}

const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ms: 0.001,
  s: 1,
  min: 60,
  m: 60,
  h: 3_600,
  d: 86_400,
};

/** A duration of the API, such as `90s`, as people write it: `90 s`, `5 min`, `30 d`. */
export function shortDuration(duration: string | undefined): string {
  const seconds = Number.parseFloat(duration ?? "0");
  if (seconds === 0) {
    return "0";
  }
  const unit = ["d", "h", "min"].find((one) => seconds % (UNIT_SECONDS[one] ?? 1) === 0) ?? "s";
  return `${seconds / (UNIT_SECONDS[unit] ?? 1)} ${unit}`;
}

/** Reads `500 ms`, `5s`, `10 min`, `10m`, `2 h`, `30 d` or `0` as a duration of the API. */
export function readDuration(text: string): string {
  const [, count = "", unit = "s"] =
    /^(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?$/.exec(text.trim()) ?? [];
  if (count === "") {
    throw new TextFault("Write a duration such as 500 ms, 5 s, 10 min, 2 h or 30 d.");
  }
  return `${Number((Number(count) * (UNIT_SECONDS[unit] ?? 1)).toFixed(3))}s`;
}

const UNIT_MIB: Readonly<Record<string, number>> = { mib: 1, gib: 1_024 };

/** Reads `512 MiB`, `2 GiB` or `512` as a number of MiB. */
export function readMib(text: string): number {
  const [, count = "", unit = "mib"] =
    /^(\d+(?:\.\d+)?)\s*(mib|gib)?$/.exec(text.trim().toLowerCase()) ?? [];
  const mib = Number(count) * (UNIT_MIB[unit] ?? 1);
  if (count === "" || !Number.isInteger(mib)) {
    throw new TextFault("Write a size such as 512 MiB or 2 GiB.");
  }
  return mib;
}

/** Reads lines of `name=value`, as they are pasted from a file. */
export function readPairs(text: string): Record<string, string> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const [, name = "", value = ""] = /^\s*([^=\s]+)\s*=(.*)$/.exec(line) ?? [];
      if (name === "") {
        throw new TextFault(
          `Write NAME=value on each line; this one has no name: ${line.slice(0, 40)}`,
        );
      }
      return [name, value];
    }),
  );
}

/** A name with its value as they are typed, which may be in lines. */
export type Pair = readonly [name: string, value: string];

/** The text of pairs is JSON, as values have lines and spaces of their own. */
export const pairsOf = (text: string): readonly Pair[] => JSON.parse(text) as Pair[];

const isEmpty = ([name, value]: Pair): boolean => name.trim() === "" && value === "";

/** Pairs at the end that are empty are left out: they are not there yet, or no longer. */
export const textOfPairs = (pairs: readonly Pair[]): string =>
  JSON.stringify(pairs.slice(0, pairs.findLastIndex((pair) => !isEmpty(pair)) + 1));

/** Names with values; throws for a value without a name, and for a name that is there twice. */
function writePairs(text: string): Record<string, string> {
  const named = pairsOf(text)
    .filter((pair) => !isEmpty(pair))
    .map(([name, value]): Pair => [name.trim(), value]);
  const names = named.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (names.includes("")) {
    throw new TextFault("Each value needs a name.");
  }
  if (twice !== undefined) {
    throw new TextFault(`${twice} is there twice.`);
  }
  return Object.fromEntries(named);
}

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line.trim() !== "");

function count(field: Omit<SettingField, "kind" | "read" | "write">): SettingField {
  const { name, label, mayBeEmpty } = field;
  return {
    ...field,
    kind: "number",
    read: (settings) => {
      const value = settings[name] ?? 0;
      return value === 0 && mayBeEmpty ? "" : String(value);
    },
    write: (text) => {
      if (text.trim() === "" && mayBeEmpty) {
        return { [name]: 0 };
      }
      if (text.trim() === "" || !Number.isFinite(Number(text))) {
        throw new TextFault(`${label} is a number.`);
      }
      return { [name]: Number(text) };
    },
  };
}

/** A size, which is written with its unit. */
function size(field: Omit<SettingField, "kind" | "unit" | "read" | "write">): SettingField {
  const { name, mayBeEmpty } = field;
  return {
    ...field,
    kind: "text",
    unit: "MiB",
    read: (settings) => {
      const value = settings[name] ?? 0;
      return value === 0 && mayBeEmpty ? "" : `${value} MiB`;
    },
    write: (text) => ({ [name]: text.trim() === "" && mayBeEmpty ? 0 : readMib(text) }),
  };
}

function time(field: Omit<SettingField, "kind" | "read" | "write">): SettingField {
  return {
    ...field,
    kind: "text",
    read: (settings) => {
      const text = shortDuration(settings[field.name] as string | undefined);
      return text === "0" && field.mayBeEmpty ? "" : text;
    },
    write: (text) => ({
      [field.name]: readDuration(text.trim() === "" && field.mayBeEmpty ? "0" : text),
    }),
  };
}

/** The text of a network that is no list of hosts is the name of its access. */
export const ACCESS = {
  open: "NETWORK_ACCESS_OPEN",
  none: "NETWORK_ACCESS_NONE",
  allow: "NETWORK_ACCESS_ALLOW",
} as const satisfies Record<string, NetworkAccessJson>;

export const SETTING_FIELDS: readonly SettingField[] = [
  count({
    name: "minWorkers",
    path: "min_workers",
    label: "Minimum workers",
    hint: "0 lets it scale to zero: the next call waits for a cold start.",
    standard: "1",
    group: "Scale",
    min: 0,
    replacesWorkers: false,
  }),
  count({
    name: "maxWorkers",
    path: "max_workers",
    label: "Maximum workers",
    hint: "The limit is for all nodes together.",
    standard: "2",
    group: "Scale",
    min: 1,
    replacesWorkers: false,
  }),
  time({
    name: "queueTime",
    path: "queue_time",
    label: "Queue time",
    hint: "More workers start when a task waits longer.",
    standard: "1 s",
    group: "Scale",
    replacesWorkers: false,
  }),
  size({
    name: "memoryMib",
    path: "memory_mib",
    label: "Memory",
    hint: "A worker that uses more is ended.",
    standard: "512 MiB",
    group: "Each worker",
    replacesWorkers: true,
  }),
  count({
    name: "cpu",
    path: "cpu",
    label: "Processors",
    hint: "0.5 is half of a processor.",
    standard: "1",
    group: "Each worker",
    min: 0.1,
    step: 0.1,
    replacesWorkers: true,
  }),
  count({
    name: "processes",
    path: "processes",
    label: "Processes",
    hint: "How many a worker may start besides its own.",
    standard: "none",
    mayBeEmpty: true,
    group: "Each worker",
    min: 0,
    replacesWorkers: true,
  }),
  count({
    name: "gpus",
    path: "gpus",
    label: "GPUs",
    hint: "0.5 is half of a GPU, with that part of its memory.",
    standard: "none",
    mayBeEmpty: true,
    besideGpus: "as its memory says",
    group: "Each worker",
    min: 0,
    step: 0.01,
    replacesWorkers: true,
  }),
  size({
    name: "gpuMemoryMib",
    path: "gpu_memory_mib",
    label: "Memory of a GPU",
    standard: "the whole GPU",
    mayBeEmpty: true,
    besideGpus: "the whole GPU",
    hint: "Others share the rest, and a worker that uses more is ended.",
    group: "Each worker",
    replacesWorkers: true,
  }),
  time({
    name: "readyTimeout",
    path: "ready_timeout",
    label: "Time to load",
    hint: "A worker that takes longer to load is ended.",
    standard: "that of the platform",
    mayBeEmpty: true,
    group: "Each worker",
    replacesWorkers: true,
  }),
  {
    name: "place",
    path: "place",
    label: "Workers run on",
    hint: "",
    standard: "all machines",
    group: "Where it runs",
    kind: "choice",
    choices: [
      ["WORKER_PLACE_ANY", "all machines, as the code says"],
      ["WORKER_PLACE_LOCAL", "the nodes of the platform"],
      ["WORKER_PLACE_REMOTE", "machines that join"],
    ],
    replacesWorkers: true,
    read: ({ place = "WORKER_PLACE_ANY" }) => place,
    write: (text) => ({ place: text as WorkerPlaceJson }),
  },
  {
    name: "requires",
    path: "requires",
    label: "Labels of its machines",
    hint: "The value * stands for all values.",
    standard: "none",
    example: "gpu=h200",
    group: "Where it runs",
    kind: "pairs",
    replacesWorkers: true,
    read: ({ requires = {} }) => textOfPairs(Object.entries(requires)),
    write: (text) => ({ requires: writePairs(text) }),
  },
  {
    name: "network",
    path: "network",
    label: "Network",
    hint: "",
    standard: "the internet",
    group: "Where it runs",
    kind: "network",
    replacesWorkers: true,
    read: ({ network }) =>
      network?.access === ACCESS.allow
        ? (network.hosts ?? []).join("\n")
        : (network?.access ?? ACCESS.open),
    write: (text) => {
      if (text === ACCESS.open || text === ACCESS.none) {
        return { network: { access: text } };
      }
      const hosts = linesOf(text).map((line) => line.trim());
      if (hosts.length === 0) {
        throw new TextFault("Write the hosts, one on a line, such as api.example.com:443.");
      }
      return { network: { access: ACCESS.allow, hosts } };
    },
  },
  {
    name: "env",
    path: "env",
    label: "Variables",
    hint: "Everybody who sees this page reads them: for a key or a password, set a secret. Lines of NAME=value can be pasted.",
    standard: "none",
    example: "MODEL=small",
    group: "Environment",
    kind: "pairs",
    replacesWorkers: true,
    read: ({ env = {} }) => textOfPairs(Object.entries(env)),
    write: (text) => ({ env: writePairs(text) }),
  },
  time({
    name: "retention",
    path: "retention",
    label: "Results are kept for",
    hint: "The time begins at the end of a task.",
    standard: "as each task says",
    mayBeEmpty: true,
    group: "Results",
    replacesWorkers: false,
  }),
];

/**
 * The default of a setting in words, such as `512 MiB` or `15 min, from the code`. `code` is what the
 * code says, undefined while that is not known; `texts` are those of all fields.
 */
export function defaultOf(
  { standard, mayBeEmpty, besideGpus, read }: SettingField,
  code: DeploymentSettingsJson | undefined,
  { gpus, gpuMemoryMib }: SettingTexts,
): string {
  if (besideGpus !== undefined && (gpus || gpuMemoryMib)) {
    return besideGpus;
  }
  if (!mayBeEmpty) {
    return standard;
  }
  if (code === undefined) {
    return "from the code";
  }
  const said = read(code);
  return said === "" ? standard : `${said}, from the code`;
}

/** The texts of a form, by the names of the settings. */
export type SettingTexts = Readonly<Record<string, string>>;

/** The texts that a deployment has. */
export const textsOf = (settings: DeploymentSettingsJson): SettingTexts =>
  Object.fromEntries(SETTING_FIELDS.map(({ name, read }) => [name, read(settings)]));

/** The settings whose texts are others than those that the deployment has. */
export const changedFields = (
  settings: DeploymentSettingsJson,
  texts: SettingTexts,
): readonly SettingField[] =>
  SETTING_FIELDS.filter(
    ({ name, read }) => texts[name] !== undefined && texts[name] !== read(settings),
  );
