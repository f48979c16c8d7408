/**
 * Configuration: from flags and the environment to one frozen object, with
 * every default and its reason. The only reader of `process.env`; secrets are
 * apart from what may be printed.
 */
import { availableParallelism } from "node:os";

/** The flags of `tessera serve` as they were typed. */
export interface ServeFlags {
  readonly port?: string;
  readonly host?: string;
  readonly workers?: string;
  readonly database?: string;
  readonly token?: string;
  readonly watch?: boolean;
}

export interface ServeConfig {
  readonly servicePath: string;
  readonly port: number;
  readonly host: string;
  readonly workers: number;
  readonly database: string;
  readonly watch: boolean;
  readonly logLevel: string;
  /** Calls and running tasks have so long to finish when the server stops. */
  readonly drainMs: number;
  /** Between the abort of a call and the kill of its worker: time to clean up. */
  readonly graceMs: number;
  /** Loading a service may read a large model. */
  readonly readyTimeoutMs: number;
  /** JSON is held in memory, parsed and checked: gRPC's usual limit of a message. */
  readonly jsonBodyBytes: number;
  /** Files are held in memory too, but not parsed. */
  readonly fileBodyBytes: number;
  readonly maxResultBytes: number;
  /** Each holds a connection open. */
  readonly maxWaiting: number;
}

export interface Secrets {
  /** Asked of every caller; undefined: nobody is asked. */
  readonly token: string | undefined;
}

/** Flags or environment that cannot be; the message says which and what would do. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

const MEBIBYTE = 1024 * 1024;
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"];

/** Reads the configuration of `tessera serve`; throws a `ConfigError`. */
export function readServeConfig(
  servicePath: string,
  flags: ServeFlags,
  env: NodeJS.ProcessEnv = process.env,
): { readonly config: ServeConfig; readonly secrets: Secrets } {
  const token = flags.token ?? (env.TESSERA_TOKEN || undefined);
  // Others cannot be sent in a header, or not by every client.
  if (token !== undefined && !/^[!-~]{8,1024}$/.test(token)) {
    throw new ConfigError(
      "--token (or TESSERA_TOKEN) must have 8 to 1024 characters: ASCII letters, digits and punctuation, no spaces",
    );
  }
  const logLevel = env.TESSERA_LOG_LEVEL ?? "info";
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new ConfigError(
      `TESSERA_LOG_LEVEL must be one of ${LOG_LEVELS.join(", ")}, not ${logLevel}`,
    );
  }
  const config: ServeConfig = {
    servicePath,
    port: integer("--port", flags.port ?? "3000", [0, 65_535]),
    host: host(flags.host ?? "127.0.0.1"),
    // Two, so that one busy or dying worker leaves another; more than the cores gain nothing.
    workers: integer(
      "--workers",
      flags.workers ?? String(Math.max(2, Math.min(4, availableParallelism()))),
      [1, 256],
    ),
    database: database(flags.database ?? ":memory:"),
    watch: flags.watch ?? false,
    logLevel,
    drainMs: 10_000,
    graceMs: 5_000,
    readyTimeoutMs: 120_000,
    jsonBodyBytes: 4 * MEBIBYTE,
    fileBodyBytes: 64 * MEBIBYTE,
    maxResultBytes: 64 * MEBIBYTE,
    maxWaiting: 10_000,
  };
  return { config: Object.freeze(config), secrets: Object.freeze({ token }) };
}

function integer(name: string, text: string, [min, max]: readonly [number, number]): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw new ConfigError(
      `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
    );
  }
  return value;
}

function host(text: string): string {
  // To the system an empty host is every address of the machine.
  if (text.trim() === "") {
    throw new ConfigError(
      "--host is empty: give an address, such as 127.0.0.1, or 0.0.0.0 for all",
    );
  }
  return text;
}

function database(text: string): string {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1];
  if (scheme !== undefined) {
    throw new ConfigError(
      `--database takes the path of a SQLite file, such as ./tasks.db, or :memory:; the scheme ${scheme}:// is not known`,
    );
  }
  if (text === "") {
    throw new ConfigError(
      "--database is empty: give the path of a SQLite file, such as ./tasks.db",
    );
  }
  return text;
}
