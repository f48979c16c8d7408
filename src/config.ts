/**
 * Configuration: from flags and the environment to one frozen object, with
 * every default and its reason. The only reader of `process.env`; secrets are
 * apart from what may be printed.
 */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";

/** The flags of `tessera serve` as they were typed. */
export interface ServeFlags {
  readonly port?: string;
  readonly host?: string;
  readonly workers?: string;
  readonly database?: string;
  readonly token?: string;
  readonly watch?: boolean;
  readonly allowRead?: readonly string[];
  readonly allowAddons?: boolean;
  readonly allowWorkers?: boolean;
  readonly env?: readonly string[];
}

export interface ServeConfig {
  readonly servicePath: string;
  readonly port: number;
  readonly host: string;
  readonly workers: number;
  readonly database: string;
  readonly watch: boolean;
  readonly logLevel: string;
  /** Calls and running tasks have so long to finish when the server stops, their grace included. */
  readonly drainMs: number;
  /** Between the abort of a call and the kill of its worker: time to clean up. */
  readonly graceMs: number;
  /** Loading a service may read a large model. */
  readonly readyTimeoutMs: number;
  /** JSON is held in memory, parsed and checked: gRPC's usual limit of a message. */
  readonly jsonBodyBytes: number;
  /** Files are held in memory too, but not parsed. */
  readonly fileBodyBytes: number;
  /**
   * The bodies of all requests under way together: eight of the largest or
   * 128 of JSON at a time. Beyond, callers are told to come again, because a
   * node without memory ends for all of them.
   */
  readonly bodyBudgetBytes: number;
  readonly maxResultBytes: number;
  /** Each holds a connection open. */
  readonly maxWaiting: number;
  /** What workers may besides reading their service: nothing, unless someone asks for it. */
  readonly workerAccess: {
    readonly read: readonly string[];
    readonly addons: boolean;
    readonly threads: boolean;
  };
}

export interface Secrets {
  /** Asked of every caller; undefined: nobody is asked. */
  readonly token: string | undefined;
  /** The workers' environment, which often holds keys. Default: empty. */
  readonly workerEnv?: { readonly [name: string]: string };
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
    bodyBudgetBytes: 512 * MEBIBYTE,
    maxResultBytes: 64 * MEBIBYTE,
    maxWaiting: 10_000,
    workerAccess: {
      read: (flags.allowRead ?? []).map(readable),
      addons: flags.allowAddons ?? false,
      threads: flags.allowWorkers ?? false,
    },
  };
  const workerEnv = Object.fromEntries((flags.env ?? []).map((text) => variable(text, env)));
  return { config: Object.freeze(config), secrets: Object.freeze({ token, workerEnv }) };
}

function readable(text: string): string {
  const path = resolve(text);
  if (text === "" || !existsSync(path)) {
    throw new ConfigError(
      `--allow-read ${JSON.stringify(text)} does not exist: give a file or a folder that workers may read`,
    );
  }
  return path;
}

/** A variable for workers, from `NAME=value` or, from this process's environment, `NAME`. */
function variable(text: string, env: NodeJS.ProcessEnv): readonly [string, string] {
  const [name = "", ...rest] = text.split("=");
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw new ConfigError(
      "--env takes the name of a variable, or NAME=value: letters, digits and underscores before the =",
    );
  }
  if (name === "TMPDIR" || name === "LANG") {
    throw new ConfigError(`--env ${name} cannot be: workers have one of their own`);
  }
  const value = rest.length > 0 ? rest.join("=") : env[name];
  if (value === undefined) {
    throw new ConfigError(`--env ${name} is not set here: set it, or give ${name}=value`);
  }
  return [name, value];
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

/** True for the address of a Postgres database rather than the path of a file. */
export function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(database);
}

function database(text: string): string {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1];
  if (scheme !== undefined && !isPostgres(text)) {
    throw new ConfigError(
      `--database takes the path of a SQLite file, such as ./tasks.db, or the address of a Postgres database, postgres://user:password@host/database; the scheme ${scheme}:// is not known`,
    );
  }
  if (text === "") {
    throw new ConfigError(
      "--database is empty: give the path of a SQLite file, such as ./tasks.db",
    );
  }
  return text;
}
