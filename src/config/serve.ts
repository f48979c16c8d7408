/** The configuration of `tessera serve` and `tessera dev`, made from their settings. */
import { availableParallelism } from "node:os";
import { type BlobsConfig, blobsConfig } from "./blobs.ts";
import { type ConnectionsConfig, connectionsConfig } from "./connections.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
import { SERVE_SETTINGS } from "./serve-settings.ts";
import { type Flags, readSettings } from "./settings.ts";
import { DATA_SETTINGS, type StartMigration } from "./start-settings.ts";
import { type TracingConfig, type TracingSecrets, tracingConfig } from "./tracing.ts";
import { ConfigError, isPostgres } from "./values.ts";

export interface ServeConfig extends ServiceLimits {
  /** The path of the service's file, or what else names a service in Python. */
  readonly servicePath: string;
  readonly python: PythonConfig;
  readonly port: number;
  readonly host: string;
  /** Undefined: as many as the service asks for, or else `defaultWorkers`. */
  readonly workers: number | undefined;
  readonly defaultWorkers: number;
  readonly database: string;
  /** How long the node waits for a database that does not answer when it starts. */
  readonly databaseWaitMs: number;
  /** What to do about a schema of an earlier version. */
  readonly migrate: StartMigration;
  readonly blobs: BlobsConfig;
  readonly watch: boolean;
  /** Origins whose pages may call from a browser; `*` is all. Empty: only the server's own. */
  readonly allowedOrigins: readonly string[];
  readonly logLevel: string;
  /** Time for calls and running tasks to finish when the server stops, their grace included. */
  readonly drainMs: number;
  /**
   * Memory for the bodies of all requests under way: eight of the largest
   * with files as text, or 128 of JSON at a time. Beyond it, callers are asked
   * to retry, because a node that runs out of memory fails all of them.
   */
  readonly bodyBudgetBytes: number;
  readonly connections: ConnectionsConfig;
  /** What workers may do beyond reading their service. Default: nothing. */
  /** The folders of models, by the names that the service has for them. */
  readonly models: { readonly [name: string]: string };
  readonly workerAccess: {
    readonly read: readonly string[];
    readonly addons: boolean;
    readonly threads: boolean;
    readonly processes: boolean;
  };
  /** Undefined: tracing is off. */
  readonly tracing: TracingConfig | undefined;
}

/** How a service in Python is run. */
interface PythonConfig {
  /** The interpreter that `--python` names. */
  readonly named: string | undefined;
  /** The folder of the virtual environment that is active in the shell. */
  readonly activeEnvironment: string | undefined;
  /** The variables that its workers have besides those of every worker. */
  readonly env: { readonly [name: string]: string };
}

export interface ServeSecrets {
  /** Leads to the same Postgres without a pooler; undefined: `database` does. */
  readonly directDatabase?: string | undefined;
  /** Every caller must send it; undefined: callers need no token. */
  readonly token: string | undefined;
  /** The workers' environment, which often holds keys. Default: empty. */
  readonly workerEnv?: { readonly [name: string]: string };
  /** Where traces are sent. Default: nowhere. */
  readonly tracing?: TracingSecrets | undefined;
}

/**
 * Variables that workers in Python take over: where programs and libraries are found, and
 * where models and settings are kept. All others come by `--env`.
 */
const PYTHON_VARIABLES = [
  "PATH",
  "HOME",
  "LD_LIBRARY_PATH",
  "CUDA_VISIBLE_DEVICES",
  "VIRTUAL_ENV",
  "BENTOML_HOME",
  "HF_HOME",
  "XDG_CACHE_HOME",
  "XDG_CONFIG_HOME",
];

const MEBIBYTE = 1024 * 1024;

/** A restart of both, or a failover, takes less. */
const DATABASE_WAIT_MS = 60_000;

/** Reads the configuration of `tessera serve`; throws a `ConfigError`. */
export function readServeConfig(
  servicePath: string,
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly config: ServeConfig; readonly secrets: ServeSecrets } {
  const read = readSettings(SERVE_SETTINGS, { flags, env });
  const { database = ":memory:", token } = read;
  const { tracing, tracingSecrets } = tracingConfig(read);
  const config: ServeConfig = {
    servicePath,
    python: {
      named: read.python,
      activeEnvironment: env.VIRTUAL_ENV || undefined,
      env: Object.fromEntries(PYTHON_VARIABLES.flatMap((name) => inherited(name, env))),
    },
    port: read.port,
    host: read.host,
    workers: read.workers,
    defaultWorkers: Math.max(2, Math.min(4, availableParallelism())),
    database,
    databaseWaitMs: DATABASE_WAIT_MS,
    migrate: read.migrate,
    blobs: blobsConfig(read.blobs, database, env),
    watch: read.watch,
    allowedOrigins: read.cors,
    logLevel: read.logLevel,
    drainMs: 10_000,
    ...SERVICE_LIMITS,
    readyTimeoutMs: read.readyTimeout,
    bodyBudgetBytes: 512 * MEBIBYTE,
    // All callers may come through one proxy, and no setting names it.
    connections: connectionsConfig({ perAddress: Number.POSITIVE_INFINITY }),
    models: Object.fromEntries(read.model),
    workerAccess: {
      read: [...read.allowRead, ...read.model.map(([, path]) => path)],
      addons: read.allowAddons,
      threads: read.allowWorkers,
      processes: read.allowProcesses,
    },
    tracing,
  };
  const secrets = {
    directDatabase: isPostgres(database)
      ? DATA_SETTINGS.directDatabase.parse(read.directDatabase, "DATABASE_DIRECT_URL")
      : undefined,
    token,
    workerEnv: Object.fromEntries(read.env.map((text) => variable(text, env))),
    tracing: tracingSecrets,
  };
  return { config: Object.freeze(config), secrets: Object.freeze(secrets) };
}

function inherited(name: string, env: NodeJS.ProcessEnv): (readonly [string, string])[] {
  const { [name]: value } = env;
  return value === undefined ? [] : [[name, value]];
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
