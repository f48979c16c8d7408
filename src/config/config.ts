/**
 * Configuration: from flags, the environment and a file to one frozen object,
 * with every default and its reason in `config/`. The only reader of
 * `process.env`; secrets are apart from what may be printed.
 */
import { type CloudEnvironment, cloudEnvironment } from "./cloud.ts";
import { type ServeConfig, type ServeFlags, type ServeSecrets, serveConfig } from "./serve.ts";
import {
  type DataConfig,
  type DataSecrets,
  dataConfig,
  type Flags,
  type StartConfig,
  type StartSecrets,
  startConfig,
} from "./start.ts";

export type { CloudEnvironment } from "./cloud.ts";
export type { ServeConfig, ServeFlags, ServeSecrets as Secrets } from "./serve.ts";
export type { Setting, Settings } from "./settings.ts";
export type {
  DataConfig,
  DataSecrets,
  Flags,
  StartConfig,
  StartSecrets,
} from "./start.ts";
export { DATA_SETTINGS, START_SETTINGS } from "./start-settings.ts";
export type { TracingConfig, TracingSecrets } from "./tracing.ts";
export { ConfigError, isPostgres } from "./values.ts";

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

/** Reads what the commands of `tessera admin` need; throws a `ConfigError`. */
export function readDataConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: DataConfig; readonly secrets: DataSecrets } {
  return dataConfig(flags, env);
}

/** Reads what the commands that speak to a platform take from the environment. */
export function readCloudEnvironment(env: NodeJS.ProcessEnv = process.env): CloudEnvironment {
  return cloudEnvironment(env, process.platform);
}
