/** Parses deployment settings for `deploy`, `deployment update` and `tessera.yaml`. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import { type DeploymentSettingsSchema, NetworkAccess, WorkerPlace } from "../../client/index.ts";
import { type CallFlags, option, repeatable } from "../command.ts";
import { usageError } from "../failure.ts";

/** The given settings; others stay as they are. */
export type GivenSettings = Pick<
  MessageInitShape<typeof DeploymentSettingsSchema> & object,
  | ("minWorkers" | "maxWorkers" | "memoryMib" | "cpu" | "env" | "network")
  | ("requires" | "place" | "queueTime" | "retention")
>;

export interface SettingsFlags extends CallFlags {
  readonly authorization?: boolean;
  readonly workers?: string;
  readonly memory?: string;
  readonly cpu?: string;
  readonly env?: readonly string[];
  readonly network?: string;
  readonly queueTime?: string;
  readonly retention?: string;
  readonly require?: readonly string[];
  readonly place?: string;
}

export const SETTINGS_OPTIONS = [
  option("--authorization", "callers need a token with protected endpoint access for it"),
  option("--no-authorization", "anyone who can reach it may call it"),
  option("--workers <min..max>", "how many workers: 1..4, or 2 for always two (default: 1..2)"),
  option("--memory <size>", "what each worker may use, such as 512Mi or 2Gi (default: 512Mi)"),
  option("--cpu <count>", "processors that each worker may use, such as 0.5 (default: 1)"),
  repeatable("--env <NAME=value>", "a variable for the workers; they replace all there were"),
  option(
    "--network <access>",
    "where workers may connect to: none, open, or allow:api.example.com,*.example.org:443 (default: open)",
  ),
  option(
    "--queue-time <duration>",
    "how long tasks should wait at most before more workers start, such as 500ms, 5s or 10m (default: 1s)",
  ),
  option(
    "--retention <duration>",
    "how long results are kept after their tasks have ended, such as 1h or 30d; 0 leaves it to its code (the default)",
  ),
  repeatable(
    "--require <label=value>",
    "a label that a machine must have to run its workers, besides those in its code, such as gpu=h200, or gpu=* for any value; they replace all there were",
  ),
  option(
    "--place <place>",
    "where its workers run: local (nodes start them), remote (they join from other machines), or any of both (the default, which leaves it to its code)",
  ),
];

/** Workers that the command line takes for a deployment; the operator's ceiling may be lower. */
export const MAX_CLI_WORKERS = 100;
/** Memory that the command line takes for each worker. */
const WORKER_MEMORY_MIB = { min: 64, max: 65_536 };
/** Processors that the command line takes for each worker. */
const WORKER_CPU_COUNT = { min: 0.1, max: 64 };

/** Time that tasks wait for workers, which the command line takes for a deployment. */
const MAX_QUEUE_TIME_MS = 3_600_000;
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

/** Parses the flags. Throws a usage error for invalid values. */
export function settingsOf(flags: SettingsFlags): GivenSettings {
  const { workers, memory, cpu, env, network, require, place, queueTime, retention } = flags;
  return {
    ...(workers !== undefined && parsed("--workers", workers, parseWorkers)),
    ...(memory !== undefined && { memoryMib: parsed("--memory", memory, parseMemory) }),
    ...(cpu !== undefined && { cpu: parsed("--cpu", cpu, parseCpu) }),
    ...(env !== undefined && { env: parseVariables(env) }),
    ...(network !== undefined && { network: parsed("--network", network, parseNetwork) }),
    ...(queueTime !== undefined && {
      queueTime: parsed("--queue-time", queueTime, parseQueueTime),
    }),
    ...(retention !== undefined && {
      retention: parsed("--retention", retention, parseRetention),
    }),
    ...(require !== undefined && { requires: parseRequirements(require) }),
    ...(place !== undefined && { place: parsed("--place", place, parsePlace) }),
  };
}

/** A value, or a description of what it must be. */
export type Parsed<T> = { readonly value: T } | { readonly fault: string };

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
export function parseMemory(text: string): Parsed<number> {
  const [, count, unit] = /^(\d{1,6})(Mi|Gi)B?$/.exec(text) ?? [];
  const mib = Number(count) * (unit === "Gi" ? 1024 : 1);
  return mib >= WORKER_MEMORY_MIB.min && mib <= WORKER_MEMORY_MIB.max
    ? { value: mib }
    : { fault: "must be from 64Mi to 64Gi, such as 512Mi" };
}

export function parseCpu(text: string): Parsed<number> {
  const count = /^\d{1,3}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  return count >= WORKER_CPU_COUNT.min && count <= WORKER_CPU_COUNT.max
    ? { value: count }
    : {
        fault: `must be a number from ${WORKER_CPU_COUNT.min} to ${WORKER_CPU_COUNT.max}, such as 0.5`,
      };
}

/** Parses `none`, `open`, or `allow:` with hosts, which the platform checks. */
export function parseNetwork(
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
export function parseQueueTime(text: string): Parsed<Duration> {
  const [, count, unit = ""] = /^(\d{1,7}(?:\.\d{1,3})?)(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Math.round(Number(count) * (UNIT_MS[unit] ?? Number.NaN));
  return ms <= MAX_QUEUE_TIME_MS
    ? { value: durationFromMs(ms) }
    : { fault: "must be a duration from 0s to 1h, such as 500ms, 5s or 10m" };
}

/** Parses how long results are kept. */
export function parseRetention(text: string): Parsed<Duration> {
  const [, count, unit = ""] = /^(\d{1,8}(?:\.\d{1,3})?)(s|m|h|d)$/.exec(text) ?? [];
  const ms = text === "0" ? 0 : Math.round(Number(count) * (UNIT_MS[unit] ?? Number.NaN));
  return ms === 0 || (ms >= 1_000 && ms <= MAX_CLI_RETENTION_MS)
    ? { value: durationFromMs(ms) }
    : { fault: "must be a duration from 1s to 365d, such as 1h or 30d, or 0" };
}

export function parsePlace(text: string): Parsed<WorkerPlace> {
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
