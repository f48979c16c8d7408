/** The settings of a deployment in messages: how each is read, checked and written. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import {
  type DeploymentSettings,
  type DeploymentSettingsSchema,
  NetworkAccess,
  type NetworkSettings,
  WorkerPlace,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { variableFault } from "../../deployments/environment.ts";
import type { FieldViolation } from "../../errors.ts";
import { ruleFault } from "../../pool/egress/rules.ts";
import { MIN_WORKER_MEMORY_BYTES } from "../../pool/limits.ts";
import { faultOfGpus, MIN_READY_TIMEOUT_MS } from "../../protocol/manifest.ts";
import {
  SETTING_FIELDS,
  type SettingsUpdate,
  type DeploymentSettings as Stored,
} from "../../storage/deployment-settings.ts";
import { durationFromMs } from "../../time/messages.ts";
import { MIN_RETENTION_MS } from "../task/submit.ts";
import { invalidField, refuse } from "../violations.ts";

type Init = Exclude<MessageInitShape<typeof DeploymentSettingsSchema>, DeploymentSettings>;

/** How one setting is spelt in messages. */
interface Conversion<Value> {
  /** Undefined: the message does not set it. A map is set by what is in it. */
  readonly read: (message: DeploymentSettings) => Value | undefined;
  readonly write: (value: Value) => Init;
  /** What is wrong beyond the rules of the proto file. */
  readonly faults?: (message: DeploymentSettings) => readonly FieldViolation[];
  /** What it becomes when an update names it and does not set it. Undefined: that is refused. */
  readonly emptied?: Value;
}

const CONVERSIONS: { readonly [Key in keyof Stored]: Conversion<Stored[Key]> } = {
  minWorkers: { read: (it) => it.minWorkers, write: (minWorkers) => ({ minWorkers }) },
  maxWorkers: { read: (it) => it.maxWorkers, write: (maxWorkers) => ({ maxWorkers }) },
  memoryMib: {
    read: (it) => it.memoryMib,
    write: (memoryMib) => ({ memoryMib }),
    faults: ({ memoryMib }) => faultsOfMemory(memoryMib),
  },
  cpu: { read: (it) => it.cpu, write: (cpu) => ({ cpu }) },
  env: {
    read: ({ env }) => (isEmpty(env) ? undefined : env),
    write: (env) => ({ env: { ...env } }),
    faults: ({ env }) => faultsOfEnvironment("settings.env", env),
    emptied: {},
  },
  network: {
    read: ({ network }) =>
      network && { access: ACCESS.name(network.access) ?? "none", hosts: [...network.hosts] },
    write: ({ access, hosts }) => ({
      network: { access: ACCESS.value(access), hosts: [...hosts] },
    }),
    faults: ({ network }) => faultsOfNetwork(network),
  },
  queueTimeMs: {
    read: ({ queueTime }) => queueTime && Math.round(durationMs(queueTime)),
    write: (ms) => ({ queueTime: durationFromMs(ms) }),
  },
  retentionMs: {
    read: ({ retention }) => retention && durationMs(retention),
    write: (ms) => ({ retention: durationFromMs(ms) }),
    faults: ({ retention }) => faultsOfTime("retention", retention, MIN_RETENTION_MS),
  },
  readyTimeoutMs: {
    read: ({ readyTimeout }) => readyTimeout && durationMs(readyTimeout),
    write: (ms) => ({ readyTimeout: durationFromMs(ms) }),
    faults: ({ readyTimeout }) => faultsOfTime("ready_timeout", readyTimeout, MIN_READY_TIMEOUT_MS),
  },
  processes: { read: (it) => it.processes, write: (processes) => ({ processes }) },
  gpus: {
    read: (it) => it.gpus,
    write: (gpus) => ({ gpus }),
    faults: ({ gpus = 0 }) => {
      const description = faultOfGpus(gpus);
      return description === undefined ? [] : [{ field: "settings.gpus", description }];
    },
  },
  gpuMemoryMib: { read: (it) => it.gpuMemoryMib, write: (gpuMemoryMib) => ({ gpuMemoryMib }) },
  requires: {
    read: ({ requires }) => (isEmpty(requires) ? undefined : requires),
    write: (requires) => ({ requires: { ...requires } }),
    emptied: {},
  },
  place: {
    read: ({ place }) => (place === undefined ? undefined : (PLACE.name(place) ?? "any")),
    write: (place) => ({ place: PLACE.value(place) }),
  },
};

const KEYS = Object.keys(CONVERSIONS) as (keyof Stored)[];

/** The paths of settings that a field mask may name: all together, or each. */
export const SETTING_PATHS = ["settings", ...KEYS.map(pathOf)] as const;

/** The settings that are set, checked; see `DeploymentSettings` in the proto file. */
export function settingsOf(message: DeploymentSettings | undefined): SettingsUpdate {
  if (message === undefined) {
    return {};
  }
  refuse(KEYS.flatMap((key) => CONVERSIONS[key].faults?.(message) ?? []));
  const read = KEYS.map((key) => [key, CONVERSIONS[key].read(message)] as const);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

/** The settings of an update that the mask names; if it names `settings` as a whole, all that are set. */
export function namedSettings(
  message: DeploymentSettings | undefined,
  mask: ReadonlySet<string>,
): SettingsUpdate {
  const set = settingsOf(message);
  if (mask.has("settings")) {
    return set;
  }
  const named = KEYS.filter((key) => mask.has(pathOf(key))).map((key) => {
    const value = set[key] ?? CONVERSIONS[key].emptied;
    if (value === undefined) {
      throw invalidField("update_mask", `names ${pathOf(key)}, which is not set`);
    }
    return [key, value] as const;
  });
  return Object.fromEntries(named);
}

/** The settings as callers see them, without the names of secrets. */
export function settingsMessage(settings: Stored): Init {
  const write = <Key extends keyof Stored>(key: Key): Init => CONVERSIONS[key].write(settings[key]);
  return Object.assign({}, ...KEYS.map(write));
}

function pathOf(key: keyof Stored): `settings.${string}` {
  return `settings.${SETTING_FIELDS[key]}`;
}

function isEmpty(map: { readonly [name: string]: string }): boolean {
  return Object.keys(map).length === 0;
}

/** The names in records of the values of an enumeration; others are refused by the proto file. */
function enumeration<Name extends string, Value extends number>(
  values: Readonly<Record<Name, Value>>,
) {
  const names = new Map(Object.entries<Value>(values).map(([name, value]) => [value, name]));
  return {
    name: (value: Value) => names.get(value) as Name | undefined,
    value: (name: Name): Value => values[name],
  };
}

const ACCESS = enumeration<Stored["network"]["access"], NetworkAccess>({
  none: NetworkAccess.NONE,
  allow: NetworkAccess.ALLOW,
  open: NetworkAccess.OPEN,
});

export const PLACE = enumeration<Stored["place"], WorkerPlace>({
  any: WorkerPlace.ANY,
  local: WorkerPlace.LOCAL,
  remote: WorkerPlace.REMOTE,
});

/** 0, or at least so long: a task that is gone as soon as it ends has no result. */
function faultsOfTime(name: string, time: Duration | undefined, leastMs: number): FieldViolation[] {
  const ms = time === undefined ? 0 : durationMs(time);
  return ms > 0 && ms < leastMs
    ? [{ field: `settings.${name}`, description: `must be 0 or at least ${leastMs / 1_000} s` }]
    : [];
}

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
