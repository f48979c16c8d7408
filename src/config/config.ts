/**
 * Configuration: flags, environment and a file become one frozen object. Every
 * default and its reason is in this folder. This file and `cloud.ts` are
 * the only readers of `process.env`; secrets are kept apart from what may be printed.
 */
import { type BuildEnvironment, buildEnvironment } from "./build.ts";
import { type ServeConfig, type ServeFlags, type ServeSecrets, serveConfig } from "./serve.ts";
import {
  type BackupConfig,
  type BackupSecrets,
  backupConfig,
  type CheckConfig,
  checkConfig,
  type DataConfig,
  type DataSecrets,
  dataConfig,
  type Flags,
  type StartConfig,
  type StartSecrets,
  startConfig,
} from "./start.ts";

import { type WorkerConfig, type WorkerSecrets, workerConfig } from "./worker.ts";

export type { CloudEnvironment } from "./cloud.ts";
export type { SmtpSecrets } from "./mail.ts";
export type { ServeConfig, ServeFlags, ServeSecrets } from "./serve.ts";
export type { Setting, Settings } from "./settings.ts";
export type {
  BackupConfig,
  BackupSecrets,
  CheckConfig,
  DataConfig,
  DataSecrets,
  Flags,
  StartConfig,
  StartSecrets,
} from "./start.ts";
export {
  BACKUP_SETTINGS,
  CHECK_SETTINGS,
  DATA_SETTINGS,
  START_SETTINGS,
} from "./start-settings.ts";
export type { TracingConfig, TracingSecrets } from "./tracing.ts";
export { ConfigError, isPostgres } from "./values.ts";
export type { WorkerConfig, WorkerSecrets } from "./worker.ts";
export { WORKER_SETTINGS } from "./worker-settings.ts";

/** Reads the configuration of `tessera serve`; throws a `ConfigError`. */
export function readServeConfig(
  servicePath: string,
  flags: ServeFlags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: ServeConfig; readonly secrets: ServeSecrets } {
  return serveConfig(servicePath, flags, env);
}

/** Reads the configuration of `tessera start`; throws a `ConfigError`. */
export function readStartConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: StartConfig; readonly secrets: StartSecrets } {
  return startConfig(flags, env);
}

/** Reads the configuration of `tessera worker`; throws a `ConfigError`. */
export function readWorkerConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: WorkerConfig; readonly secrets: WorkerSecrets } {
  return workerConfig(flags, env);
}

/** Reads the configuration of `tessera admin`; throws a `ConfigError`. */
export function readDataConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: DataConfig; readonly secrets: DataSecrets } {
  return dataConfig(flags, env);
}

/** Reads the configuration of `tessera admin check`; throws a `ConfigError`. */
export function readCheckConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: CheckConfig; readonly secrets: DataSecrets } {
  return checkConfig(flags, env);
}

/** Reads the configuration of `tessera admin backup` and `restore`; throws a `ConfigError`. */
export function readBackupConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: BackupConfig; readonly secrets: BackupSecrets } {
  return backupConfig(flags, env);
}

/** Reads the environment of a build. */
export function readBuildEnvironment(env: NodeJS.ProcessEnv = process.env): BuildEnvironment {
  return buildEnvironment(env);
}
