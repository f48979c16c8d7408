/** The configuration of `tessera launcher`, made from its settings. */
import { resolve } from "node:path";
import { readConfigFile } from "./file.ts";
import { LAUNCHER_SETTINGS, type LaunchOn } from "./launcher-settings.ts";
import { type Flags, readSettings } from "./settings.ts";
import * as values from "./values.ts";

export interface LauncherConfig {
  /** The platform's address, without a trailing slash. */
  readonly url: string;
  readonly on: LaunchOn;
  readonly hosts: readonly string[];
  /** The path of a Pod; undefined but with `kubernetes`. */
  readonly pod: string | undefined;
  readonly options: readonly string[];
  /** What a machine runs; empty: `tessera worker`. */
  readonly command: readonly string[];
  readonly maxMachines: number;
  readonly workers: number;
  readonly labels: { readonly [name: string]: string };
  readonly lifetimeMs: number;
  readonly joinWithinMs: number;
  /** An absolute path. */
  readonly dataFolder: string;
  readonly logLevel: string;
}

/** Reads the configuration of `tessera launcher`. Throws a `ConfigError`. */
export function readLauncherConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  command: readonly string[],
): { readonly config: LauncherConfig; readonly token: string } {
  const named = flags.config ?? (env.TESSERA_CONFIG || undefined);
  const file = named === undefined ? undefined : readConfigFile(named, LAUNCHER_SETTINGS);
  const read = readSettings(LAUNCHER_SETTINGS, { flags, env, file });
  const on = required(read.on, "--on <cluster>, which says where machines are started");
  if (on === "ssh" && read.hosts.length === 0) {
    throw new values.ConfigError("tessera launcher --on ssh needs --host <host>, once for each");
  }
  if (on === "kubernetes" && read.template === undefined) {
    throw new values.ConfigError(
      "tessera launcher --on kubernetes needs --pod <file>, the Pod of a machine",
    );
  }
  if (on === "kubernetes" && command.length > 0) {
    throw new values.ConfigError(
      "with --on kubernetes, the Pod says what a machine runs: leave the command out",
    );
  }
  const config: LauncherConfig = {
    url: required(read.join, "--join <url>, the platform's address"),
    on,
    hosts: read.hosts,
    pod: read.template === undefined ? undefined : resolve(read.template),
    options: read.options,
    command,
    maxMachines: read.maxMachines,
    workers: read.workers,
    labels: read.labels,
    lifetimeMs: read.lifetime,
    joinWithinMs: read.joinWithin,
    dataFolder: resolve(read.dataFolder),
    logLevel: read.logLevel,
  };
  const token = values.token(
    required(
      read.token,
      "TESSERA_LAUNCH_TOKEN, a token that `tessera token create --access launch` makes",
    ),
    "TESSERA_LAUNCH_TOKEN",
  );
  return { config: Object.freeze(config), token };
}

function required<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined || value === "") {
    throw new values.ConfigError(`tessera launcher needs ${what}`);
  }
  return value;
}
