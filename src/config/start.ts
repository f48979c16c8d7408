/** The configuration of `tessera start` and `tessera admin`, made from their settings. */
import { availableParallelism, totalmem } from "node:os";
import { join, resolve } from "node:path";
import type { OrganizationCreators } from "../auth/organization-creators.ts";
import { overlaps } from "../collections/networks.ts";
import type { Ceilings } from "../deployments/ceilings.ts";
import type { BucketGrant } from "../hosting/models/bucket.ts";
import type { BudgetLimits } from "../pool/room/shortage.ts";
import type { SandboxMode } from "../pool/sandbox/sandbox.ts";
import { type BlobsConfig, blobsConfig, checkGrants, type S3Config, s3Config } from "./blobs.ts";
import { type ConnectionsConfig, connectionsConfig } from "./connections.ts";
import { readConfigFile } from "./file.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
import { type SmtpSecrets, smtpSecrets } from "./mail.ts";
import {
  type Flags,
  readSettings,
  type Settings,
  type ShownSetting,
  shownSettings,
  type Values,
} from "./settings.ts";
import {
  BACKUP_SETTINGS,
  CELLS_SETTINGS,
  CHECK_SETTINGS,
  DATA_SETTINGS,
  START_SETTINGS,
  type StartMigration,
} from "./start-settings.ts";
import { type TracingConfig, type TracingSecrets, tracingConfig } from "./tracing.ts";
import { type CellAddress, ConfigError, isPostgres, isSameDatabase } from "./values.ts";

const MEBIBYTE = 1024 ** 2;

/** What every command that works on the platform's data needs. */
export interface DataConfig {
  /** An absolute path. */
  readonly dataFolder: string;
}

/** What `tessera admin backup` and `restore` need besides. */
export interface BackupConfig extends DataConfig {
  readonly blobs: BlobsConfig;
}

/** What `tessera admin check` needs besides. */
export interface CheckConfig extends DataConfig {
  readonly sandbox: SandboxMode;
  /** The folders in which programs are looked up, as in `PATH`. */
  readonly searchPath: string;
}

export interface DataSecrets {
  /** The absolute path of a file, or the address of a Postgres database with its password. */
  readonly database: string;
  /** Leads to the same Postgres without a pooler; undefined: `database` does. */
  readonly directDatabase: string | undefined;
  /** From the environment; undefined: the keys are in the data folder. */
  readonly keys: string | undefined;
}

/** What `tessera admin cells` needs. */
export interface CellsSecrets extends DataSecrets {
  /** Further databases, each with a part of the tasks. */
  readonly cells: readonly CellAddress[];
}

interface BackupSecrets extends DataSecrets {
  /** From the environment; undefined: it is read from a file, or asked for. */
  readonly passphrase: string | undefined;
}

export interface StartConfig extends CheckConfig, BackupConfig, ServiceLimits {
  /** Disk space of what the workers of each deployment keep. 0: they keep nothing. */
  readonly maxCacheBytes: number;
  /** Disk space of the models of all deployments. */
  readonly maxModelsBytes: number;
  readonly migrate: StartMigration;
  readonly host: string;
  readonly port: number;
  /** A port on which other nodes of the machine listen, too; undefined: none. */
  readonly sharedPort: number | undefined;
  /** Without a trailing slash; undefined: where this machine reaches the port that is bound. */
  readonly publicUrl: string | undefined;
  /** Undefined: the host of the public URL. */
  readonly platformDomain: string | undefined;
  readonly appsDomain: string;
  readonly trustedProxies: readonly string[];
  /** Origins whose pages may call deployments; `*` is all. */
  readonly allowedOrigins: readonly string[];
  readonly logLevel: string;
  /** Whether calls are logged at info instead of debug. */
  readonly logsCalls: boolean;
  /** How long the node waits for a database that does not answer when it starts. */
  readonly databaseWaitMs: number;
  readonly sessionLifetimeMs: number;
  /** How long the node goes on serving after SIGTERM, unready. */
  readonly drainDelayMs: number;
  readonly drainMs: number;
  readonly bodyBudgetBytes: number;
  readonly connections: ConnectionsConfig;
  /** Whether workers may load native code. */
  readonly allowsNativeCode: boolean;
  /** How services in Python are run. */
  readonly python: PythonStartConfig;
  /** Host rules: what deployments may reach although it is not public. */
  readonly allowedEgress: readonly string[];
  /** Where models of `hf://` are imported from. */
  readonly modelHub: string;
  /** What organizations may import of S3. */
  readonly modelBuckets: readonly BucketGrant[];
  readonly s3: S3Config;
  /** The labels of this machine, which deployments may require. */
  readonly labels: { readonly [name: string]: string };
  /** What deployments may ask for at most. */
  readonly ceilings: Ceilings;
  /** What the workers on this node may take together. */
  readonly budget: BudgetLimits;
  /** How long a worker keeps its GPUs at least. */
  readonly gpuStayMs: number;
  /** Added to the series that organizations read. */
  readonly externalLabels: { readonly [name: string]: string };
  readonly oidc:
    | { readonly issuer: string; readonly clientId: string; readonly name: string }
    | undefined;
  /** Who may create organizations; undefined: as `mayCreate` says. */
  readonly organizationCreators: OrganizationCreators | undefined;
  /** Undefined: tracing is off. */
  readonly tracing: TracingConfig | undefined;
  /** All settings as operators are shown them, without secrets. */
  readonly shown: readonly ShownSetting[];
}

export interface PythonStartConfig {
  /** Such as `3.11=/usr/bin/python3.11`. Empty: those on the path. */
  readonly interpreters: readonly string[];
  /** Whether they run in the kernel's sandbox or not at all. */
  readonly needsSandbox: boolean;
  /** The program uv; undefined: it is fetched. */
  readonly uv: string | undefined;
  /** Disk space of the packages that one organization uses. */
  readonly maxBytesPerOrganization: number;
}

export interface StartSecrets extends CellsSecrets {
  /** Where packages come from, possibly with passwords: the variables of pip and uv. */
  readonly packages: NodeJS.ProcessEnv;
  readonly oidcClientSecret: string | undefined;
  /** The token that `/metrics` asks for; undefined: it answers nobody. */
  readonly metricsToken: string | undefined;
  /** Address of the Prometheus that answers `/federate`, possibly with a password. */
  readonly prometheusUrl: string | undefined;
  /** The secret that trusted proxies send; undefined: they are known by their addresses. */
  readonly proxySecret: string | undefined;
  /** How mail is sent; undefined: not at all. */
  readonly smtp: SmtpSecrets | undefined;
  /** Where traces are sent; undefined: nowhere. */
  readonly tracing: TracingSecrets | undefined;
}

/** Reads the configuration of `tessera start`. Throws a `ConfigError`. */
export function readStartConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly config: StartConfig; readonly secrets: StartSecrets } {
  const sources = sourcesOf(flags, env);
  const read = readSettings(START_SETTINGS, sources);
  checkDomain(read);
  checkProxies(read);
  const data = dataSecrets(read);
  checkSharedPort(read, data);
  const { tracing, tracingSecrets } = tracingConfig(read);
  const blobs = blobsConfig(read.blobs ?? ownBlobs(read.dataFolder, data), data.database, env);
  checkGrants(read.modelBuckets, blobs);
  const config: StartConfig = {
    ...SERVICE_LIMITS,
    dataFolder: resolve(read.dataFolder),
    migrate: read.migrate,
    host: read.host,
    port: read.port,
    sharedPort: read.sharedPort,
    publicUrl: read.publicUrl,
    platformDomain: read.platformDomain,
    appsDomain: read.appsDomain,
    trustedProxies: read.trustedProxies,
    allowedOrigins: read.cors,
    logLevel: read.logLevel,
    logsCalls: read.accessLog === "on",
    databaseWaitMs: read.databaseWait,
    sessionLifetimeMs: read.sessionLifetime,
    drainDelayMs: read.drainDelay,
    drainMs: read.drainTime,
    bodyBudgetBytes: read.bodyBudget,
    connections: connectionsConfig({
      total: read.maxConnections,
      perAddress: read.maxConnectionsPerAddress,
    }),
    blobs,
    allowsNativeCode: read.nativeCode === "allow",
    python: {
      interpreters: read.pythonInterpreters?.split(",") ?? [],
      needsSandbox: read.pythonSandbox === "kernel",
      uv: read.uv,
      maxBytesPerOrganization: read.maxEnvironmentsPerOrganization,
    },
    sandbox: read.sandbox,
    searchPath: env.PATH ?? "",
    allowedEgress: read.allowEgress,
    labels: read.labels,
    ceilings: {
      workers: read.maxWorkersPerDeployment,
      memoryMib: Math.floor(read.maxMemoryPerWorker / MEBIBYTE),
      cpu: read.maxCpuPerWorker,
      processes: read.maxProcessesPerWorker,
      retentionMs: read.maxRetention,
      deployments: read.maxDeployments,
      storageBytes: read.maxOrganizationStorage,
    },
    modelHub: read.modelHub,
    modelBuckets: read.modelBuckets,
    s3: s3Config(env),
    maxJsonBodyBytes: read.maxJson,
    readyTimeoutMs: read.readyTimeout,
    maxCacheBytes: read.maxCache,
    maxModelsBytes: read.maxModels,
    budget: budgetLimits(read),
    gpuStayMs: read.gpuStay,
    externalLabels: read.externalLabels,
    oidc: oidcOf(read),
    organizationCreators: read.organizationCreators,
    tracing,
    shown: shownSettings(START_SETTINGS, sources),
  };
  const { oidcClientSecret, metricsToken, prometheusUrl, proxySecret } = read;
  const secrets = {
    ...data,
    cells: cellsOf(read, data),
    packages: packageVariables(env),
    oidcClientSecret,
    metricsToken,
    prometheusUrl,
    proxySecret,
    smtp: smtpSecrets(read),
    tracing: tracingSecrets,
  };
  return { config: Object.freeze(config), secrets: Object.freeze(secrets) };
}

/** Reads the configuration of `tessera admin`, which works on the same data. Throws a `ConfigError`. */
export function readDataConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly config: DataConfig; readonly secrets: DataSecrets } {
  const read = readFrom(DATA_SETTINGS, flags, env);
  const config = { dataFolder: resolve(read.dataFolder) };
  return { config: Object.freeze(config), secrets: Object.freeze(dataSecrets(read)) };
}

/** Reads the configuration of `tessera admin cells`. Throws a `ConfigError`. */
export function readCellsConfig(flags: Flags, env: NodeJS.ProcessEnv): CellsSecrets {
  const read = readFrom(CELLS_SETTINGS, flags, env);
  const data = dataSecrets(read);
  return Object.freeze({ ...data, cells: cellsOf(read, data) });
}

/** Reads the configuration of `tessera admin check`. Throws a `ConfigError`. */
export function readCheckConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly config: CheckConfig; readonly secrets: DataSecrets } {
  const { config, secrets } = readDataConfig(flags, env);
  const { sandbox } = readFrom(CHECK_SETTINGS, flags, env);
  return { config: Object.freeze({ ...config, sandbox, searchPath: env.PATH ?? "" }), secrets };
}

/** Reads the configuration of `tessera admin backup` and `restore`. Throws a `ConfigError`. */
export function readBackupConfig(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly config: BackupConfig; readonly secrets: BackupSecrets } {
  const read = readFrom(BACKUP_SETTINGS, flags, env);
  const data = dataSecrets(read);
  const blobs = blobsConfig(read.blobs ?? ownBlobs(read.dataFolder, data), data.database, env);
  return {
    config: Object.freeze({ dataFolder: resolve(read.dataFolder), blobs }),
    secrets: Object.freeze({ ...data, passphrase: env.TESSERA_BACKUP_PASSPHRASE || undefined }),
  };
}

/** Reads some of the platform's settings; a file may have all of them. */
function readFrom<Table extends Settings>(
  table: Table,
  flags: Flags,
  env: NodeJS.ProcessEnv,
): Values<Table> {
  return readSettings(table, sourcesOf(flags, env));
}

function sourcesOf(flags: Flags, env: NodeJS.ProcessEnv) {
  const file = readConfigFile(flags.config ?? (env.TESSERA_CONFIG || undefined), START_SETTINGS);
  return { flags, env, file };
}

function dataSecrets({
  dataFolder,
  database = join(dataFolder, "tessera.db"),
  directDatabase,
  keys,
}: Values<typeof DATA_SETTINGS>): DataSecrets {
  if (database === ":memory:") {
    throw new ConfigError(
      "the platform keeps its people and tokens in a file or in Postgres, not in memory: leave --database out, or name one",
    );
  }
  if (directDatabase !== undefined && !isPostgres(database)) {
    throw new ConfigError(
      "DATABASE_DIRECT_URL is another way to the Postgres of DATABASE_URL, which names no Postgres: set both, or neither",
    );
  }
  return {
    database: isPostgres(database) ? database : resolve(database),
    directDatabase,
    keys,
  };
}

/** The cells beside the database, which is their home. */
function cellsOf(
  { cells = [] }: { readonly cells?: readonly CellAddress[] | undefined },
  { database }: DataSecrets,
): readonly CellAddress[] {
  if (cells.length > 0 && !isPostgres(database)) {
    throw new ConfigError(
      "TESSERA_CELLS is for a platform whose home is a Postgres, too: set DATABASE_URL to one, or leave it out",
    );
  }
  const same = cells.find((cell) => isSameDatabase(cell.database, database));
  if (same !== undefined) {
    throw new ConfigError(
      `TESSERA_CELLS gives cell ${same.name} the database of DATABASE_URL: a cell needs one of its own`,
    );
  }
  return cells;
}

/** Nodes that share a Postgres keep their files there; a single node keeps them beside its other data. */
function ownBlobs(dataFolder: string, { database }: DataSecrets): string | undefined {
  return isPostgres(database) ? undefined : join(dataFolder, "blobs");
}

/** Who shares a port shares the database, and workers may not listen on it. */
function checkSharedPort(
  { port, sharedPort, sandbox, pythonSandbox }: Values<typeof START_SETTINGS>,
  { database }: DataSecrets,
): void {
  if (sharedPort === undefined) {
    return;
  }
  if (!isPostgres(database)) {
    throw new ConfigError(
      "--shared-port is for several nodes, which need one Postgres: set DATABASE_URL, or leave it out",
    );
  }
  if (sharedPort === port) {
    throw new ConfigError(
      `--shared-port ${sharedPort} is the node's own port, too: give each node a --port of its own, at which it is probed and scraped`,
    );
  }
  if (sandbox === "permission" || pythonSandbox === "none") {
    throw new ConfigError(NEEDS_SANDBOX);
  }
}

/** Why a node shares no port whose workers might listen there, too. */
export const NEEDS_SANDBOX =
  "--shared-port needs the sandbox of the kernel (--sandbox kernel says what it lacks), for workers in Python, too: without it the code of a deployment could listen on the port, too, and be sent the tokens of callers";

/** The public URL must not be below the platform's domain, where each host belongs to an organization. */
function checkDomain({ publicUrl, platformDomain }: Values<typeof START_SETTINGS>): void {
  const { hostname } = new URL(publicUrl ?? "http://localhost");
  if (platformDomain !== undefined && hostname.endsWith(`.${platformDomain}`)) {
    throw new ConfigError(
      `the public URL is on ${hostname}, which below the platform domain ${platformDomain} would be the host of an organization: leave --platform-domain out, or set it to ${hostname}`,
    );
  }
}

/** A trusted proxy on this machine needs a secret: code of deployments runs here too and may connect to the node. */
function checkProxies({ trustedProxies, proxySecret }: Values<typeof START_SETTINGS>): void {
  if (proxySecret !== undefined && trustedProxies.length === 0) {
    throw new ConfigError(
      "TESSERA_PROXY_SECRET is what trusted proxies send: name them with --trusted-proxies, such as 127.0.0.1 for one on this machine",
    );
  }
  const here = trustedProxies.find((network) =>
    ["127.0.0.0/8", "::1"].some((loopback) => overlaps(network, loopback)),
  );
  if (proxySecret === undefined && here !== undefined) {
    throw new ConfigError(
      `--trusted-proxies ${here} includes this machine itself, on which the code of deployments runs, and which could then say where requests come from. Set TESSERA_PROXY_SECRET to a text of 16 characters or more, and have the proxy send it as the header Tessera-Proxy-Secret (nginx: proxy_set_header, Caddy: header_up)`,
    );
  }
}

function oidcOf({
  oidcIssuer: issuer,
  oidcClientId: clientId,
  oidcName: name,
}: Values<typeof START_SETTINGS>): StartConfig["oidc"] {
  if (issuer === undefined && clientId === undefined) {
    return undefined;
  }
  if (issuer === undefined || clientId === undefined) {
    const missing = issuer === undefined ? "--oidc-issuer" : "--oidc-client-id";
    throw new ConfigError(
      `sign-in by OpenID Connect needs both an issuer and a client id: set ${missing} too`,
    );
  }
  return { issuer, clientId, name };
}

/** The variables of pip and uv, of skopeo, and of how the network is reached: nothing else of the environment. */

const NAMES =
  /^(?:(?:UV|PIP)_.+|SSL_CERT_(?:FILE|DIR)|REGISTRY_AUTH_FILE|NETRC|HOME|PATH|(?:HTTPS?|ALL|NO)_PROXY)$/i;

function packageVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => NAMES.test(name)));
}

// The budget of a node: as it is set, or made from what the machine has.

/** Default of a node's workers: even idle ones are watched, and take some processor time. */
const DEFAULT_WORKERS_PER_CORE = 64;

/** Part of the machine's memory that is for workers: the node, its database and the system need some. */
const DEFAULT_WORKERS_MEMORY_RATIO = 0.75;

/** Part of a node that one organization may take, so that something is left for others. */
const DEFAULT_ORGANIZATION_RATIO = 0.75;

type BudgetSettings = Pick<
  Values<typeof START_SETTINGS>,
  "maxWorkers" | "maxMemory" | "maxWorkersPerOrganization" | "maxMemoryPerOrganization"
>;

/** What this process may use. */
interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

export function budgetLimits(read: BudgetSettings, machine: Machine = thisMachine()): BudgetLimits {
  const node = {
    workers: read.maxWorkers ?? machine.cores * DEFAULT_WORKERS_PER_CORE,
    memoryBytes: read.maxMemory ?? Math.floor(machine.memoryBytes * DEFAULT_WORKERS_MEMORY_RATIO),
  };
  return {
    node,
    organization: {
      workers:
        read.maxWorkersPerOrganization ?? Math.ceil(node.workers * DEFAULT_ORGANIZATION_RATIO),
      memoryBytes:
        read.maxMemoryPerOrganization ?? Math.ceil(node.memoryBytes * DEFAULT_ORGANIZATION_RATIO),
    },
  };
}

/** The machine, or the container with its limit of memory (cgroup) in which the process runs. */
function thisMachine(): Machine {
  // 0 or more than there is: no limit.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  return { cores: availableParallelism(), memoryBytes: Math.min(totalmem(), limit) };
}
