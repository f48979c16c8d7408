/** The configuration of `tessera worker`, made from its settings. */
import { resolve } from "node:path";
import type { SandboxMode } from "../pool/sandbox/sandbox.ts";
import { readConfigFile } from "./file.ts";
import { type Flags, readSettings } from "./settings.ts";
import type { PythonStartConfig } from "./start.ts";
import * as values from "./values.ts";
import { WORKER_SETTINGS } from "./worker-settings.ts";

export interface WorkerConfig {
  /** The platform's address, without a trailing slash. */
  readonly url: string;
  readonly deployment: string;
  readonly workers: number;
  readonly labels: { readonly [name: string]: string };
  /** How long the platform may hear nothing of the workers. Undefined: as the platform says. */
  readonly silenceLimitMs: number | undefined;
  /** When the machine ends; undefined: it stays. */
  readonly untilMs: number | undefined;
  /** An absolute path. */
  readonly dataFolder: string;
  /** Disk space of what the workers keep between them and beyond their ends. 0: they keep nothing. */
  readonly maxCacheBytes: number;
  readonly maxModelsBytes: number;
  readonly sandbox: SandboxMode;
  /** The folders in which programs are looked up, as in `PATH`. */
  readonly searchPath: string;
  readonly python: PythonStartConfig;
  /** Host rules: what services may reach although it is not public. */
  readonly allowedEgress: readonly string[];
  readonly logLevel: string;
}

export interface WorkerSecrets {
  readonly token: string;
  /** Where packages come from, possibly with passwords: the variables of pip and uv. */
  readonly packages: NodeJS.ProcessEnv;
}

/** Reads the configuration of `tessera worker`. Throws a `ConfigError`. */
export function readWorkerConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly config: WorkerConfig; readonly secrets: WorkerSecrets } {
  const named = flags.config ?? (env.TESSERA_CONFIG || undefined);
  const file = named === undefined ? undefined : readConfigFile(named, WORKER_SETTINGS);
  const read = readSettings(WORKER_SETTINGS, { flags, env, file });
  const config: WorkerConfig = {
    url: required(read.join, "--join <url>, the platform's address"),
    deployment: required(read.deployment, "--deployment <name>, whose calls the workers run"),
    workers: read.workers,
    labels: read.labels,
    silenceLimitMs: read.silenceLimit,
    untilMs: read.until,
    dataFolder: resolve(read.dataFolder),
    maxCacheBytes: read.maxCache,
    maxModelsBytes: read.maxModels,
    sandbox: read.sandbox,
    searchPath: env.PATH ?? "",
    python: {
      interpreters: read.pythonInterpreters?.split(",") ?? [],
      needsSandbox: read.pythonSandbox === "kernel",
      uv: read.uv,
      maxBytesPerOrganization: read.maxEnvironmentsPerOrganization,
    },
    allowedEgress: read.allowEgress,
    logLevel: read.logLevel,
  };
  const token = values.token(
    required(
      read.token,
      "TESSERA_WORKER_TOKEN, a token that `tessera token create --access worker` makes",
    ),
    "TESSERA_WORKER_TOKEN",
  );
  return { config: Object.freeze(config), secrets: Object.freeze({ token, packages: env }) };
}

function required(value: string | undefined, what: string): string {
  if (value === undefined || value === "") {
    throw new values.ConfigError(`tessera worker needs ${what}`);
  }
  return value;
}
