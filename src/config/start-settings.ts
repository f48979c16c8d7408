/** Settings of `tessera start` and `tessera admin`, as data; docs/configuration.md is generated from them. */
import { ORGANIZATION_CREATORS } from "../auth/organization-creators.ts";
import type { SandboxMode } from "../pool/sandbox/sandbox.ts";
import {
  MAX_JSON_OPTION_BYTES,
  MAX_PROCESSES,
  MAX_READY_TIMEOUT_MS,
  MIN_READY_TIMEOUT_MS,
} from "../protocol/manifest.ts";
import { bucketGrants } from "./blobs.ts";
import { MAIL_SETTINGS } from "./mail.ts";
import { PYTHON_SETTINGS } from "./python.ts";
import { optional, type Settings, setting } from "./settings.ts";
import { TRACING_SETTINGS } from "./tracing.ts";
import * as values from "./values.ts";
import { LOG_LEVELS } from "./values.ts";

/** The settings of signing in with an OpenID Connect provider. */
const OIDC_SETTINGS = {
  oidcIssuer: optional({
    flag: "--oidc-issuer <url>",
    variable: "TESSERA_OIDC_ISSUER",
    shownDefault: "none",
    parse: values.issuer,
    summary: "OpenID Connect provider with which people may sign in",
    reason:
      "without one, people sign in with a password; the redirect URL to register there is <public URL>/auth/oidc/callback",
  }),
  oidcClientId: optional({
    flag: "--oidc-client-id <id>",
    variable: "TESSERA_OIDC_CLIENT_ID",
    shownDefault: "none",
    parse: values.line,
    summary: "client id of this platform at the provider",
    reason: "required with an issuer",
  }),
  oidcClientSecret: optional({
    variable: "TESSERA_OIDC_CLIENT_SECRET",
    shownDefault: "none",
    parse: values.text,
    isSecret: () => true,
    summary: "client secret that the provider issued to this platform",
    reason: "none: a public client, protected by PKCE",
  }),
  oidcName: setting({
    flag: "--oidc-name <name>",
    variable: "TESSERA_OIDC_NAME",
    fallback: "single sign-on",
    parse: values.line,
    summary: "name of the provider on the sign-in page",
    reason: "as in “Sign in with Example Corp”",
  }),
} as const satisfies Settings;

const DAY_MS = 24 * 60 * 60 * 1000;
const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

/** What a start does about a schema of an earlier version. */
export type StartMigration = "auto" | "check";

/** Settings of every command that works on the platform's data. */
export const DATA_SETTINGS = {
  dataFolder: setting({
    flag: "--data <folder>",
    variable: "TESSERA_DATA",
    fallback: "./.tessera",
    parse: values.line,
    summary: "folder for the database file and the file of keys",
    reason:
      "in the working directory, so that a first try leaves no files anywhere else; its mode is 0700",
  }),
  database: optional({
    flag: "-d, --database <address>",
    variable: "DATABASE_URL",
    shownDefault: "tessera.db in the data folder",
    parse: values.database,
    isSecret: (text) => /^[^/]*:\/\/[^/]*:[^/]*@|[?&]password=/.test(text),
    summary:
      "SQLite file, or postgres://user:password@host/database shared by any number of nodes; several hosts, host1:5432,host2:5432, are tried in order for the one that takes writes",
    reason:
      "a file needs no other software; other users of the machine can see a command line, so pass a password in the environment",
  }),
  directDatabase: optional({
    variable: "DATABASE_DIRECT_URL",
    shownDefault: "the database's address",
    parse: values.postgres,
    isSecret: () => true,
    summary: "address of the same Postgres without a pooler, for notifications and migrations",
    reason:
      "a pooler in transaction mode, such as pgbouncer, loses notifications; without them, nodes ask the database every second",
  }),
  keys: optional({
    variable: "TESSERA_KEYS",
    shownDefault: "keys.json in the data folder",
    parse: values.text,
    isSecret: () => true,
    summary: "keys that digest and seal token values, in the format of keys.json",
    reason:
      "by default the first start creates them, in a file of mode 0600; all nodes need the same keys",
  }),
} as const;

const CELLS_SETTING = optional({
  variable: "TESSERA_CELLS",
  shownDefault: "none",
  parse: values.cells,
  isSecret: () => true,
  summary:
    "further Postgres databases, each with a part of the tasks: a=postgres://user:password@host/database, with commas between them",
  reason:
    "one Postgres carries what most platforms will ever submit; all nodes need the same cells, and one that is named stays until it is closed and empty",
});

/** Settings of `tessera admin cells`. */
export const CELLS_SETTINGS = { ...DATA_SETTINGS, cells: CELLS_SETTING } as const;

const MIGRATE_SETTING = setting({
  flag: "--migrate <mode>",
  variable: "TESSERA_MIGRATE",
  fallback: "auto",
  parse: values.oneOf<StartMigration>(["auto", "check"]),
  summary:
    "what a start does about a schema of an earlier version: auto migrates it, check refuses to start and says what to run",
  reason:
    "an upgrade needs no step of its own; use check where `tessera admin migrate` is one, or where nodes may not change tables",
});

export const SANDBOX_SETTING = setting({
  flag: "--sandbox <level>",
  variable: "TESSERA_SANDBOX",
  fallback: "auto",
  parse: values.oneOf<SandboxMode>(["auto", "kernel", "permission"]),
  summary:
    "what holds the workers of deployments: kernel (bubblewrap, on Linux), permission (Node's permission model), or auto, the stronger one that works here",
  reason:
    "so that a first try needs nothing installed; use kernel to refuse to start without it, wherever you do not trust everyone who deploys",
});

/** Settings of `tessera admin check`. */
export const CHECK_SETTINGS = { ...DATA_SETTINGS, sandbox: SANDBOX_SETTING } as const;

const BLOBS_SETTING = optional({
  flag: "--blobs <place>",
  variable: "TESSERA_BLOBS",
  shownDefault: "blobs in the data folder, or the Postgres database",
  parse: values.line,
  summary: "folder or s3://bucket/prefix for artifacts and large files",
  reason:
    "all nodes need the same place, which a shared Postgres provides; credentials for S3 come from the usual AWS sources",
});

/** Settings of `tessera admin backup` and `restore`. */
export const BACKUP_SETTINGS = { ...DATA_SETTINGS, blobs: BLOBS_SETTING } as const;

/** Every setting of `tessera start`, in the order in which they are shown. */
export const START_SETTINGS = {
  ...DATA_SETTINGS,
  cells: CELLS_SETTING,
  migrate: MIGRATE_SETTING,
  host: setting({
    flag: "--host <host>",
    variable: "TESSERA_HOST",
    fallback: "localhost",
    parse: values.host,
    summary: "address to listen on; localhost is 127.0.0.1 and ::1, 0.0.0.0 is all interfaces",
    reason: "reachable from this machine only, until you change it",
  }),
  port: setting({
    flag: "-p, --port <port>",
    variable: "TESSERA_PORT",
    fallback: "3000",
    parse: values.integer(0, 65_535),
    summary: "port for HTTP, Connect and gRPC; 0 picks a free port",
    reason: "the same as for `tessera serve`",
  }),
  sharedPort: optional({
    flag: "--shared-port <port>",
    variable: "TESSERA_SHARED_PORT",
    shownDefault: "none",
    parse: values.integer(1, 65_535),
    summary: "further port, on which other nodes of this machine listen, too",
    reason:
      "one node uses little more than one core for calls; several on one Postgres use a machine of many, and this port makes them one. Needs Linux and the sandbox of the kernel",
  }),
  publicUrl: optional({
    flag: "--public-url <url>",
    variable: "TESSERA_PUBLIC_URL",
    shownDefault: "http://<host>:<port>, of the shared port where there is one",
    parse: values.origin,
    summary: "address at which browsers and programs reach the platform",
    reason:
      "used in links, and decides whether cookies are sent over TLS only: set it whenever others use the platform",
  }),
  platformDomain: optional({
    flag: "--platform-domain <domain>",
    variable: "TESSERA_PLATFORM_DOMAIN",
    shownDefault: "the host of the public URL",
    parse: values.domain,
    summary: "domain under which each organization has a host, <organization>.<domain>",
    reason: "needs a wildcard DNS record; localhost has one on most machines",
  }),
  appsDomain: setting({
    flag: "--apps-domain <domain>",
    variable: "TESSERA_APPS_DOMAIN",
    fallback: "apps.localhost",
    parse: values.domain,
    summary: "domain under which each deployment has a host",
    reason:
      "separate from the platform's domain, so that a deployment's pages never get its cookies",
  }),
  trustedProxies: setting({
    flag: "--trusted-proxies <networks>",
    variable: "TESSERA_TRUSTED_PROXIES",
    fallback: "",
    parse: values.networks,
    summary: "comma-separated networks of proxies whose X-Forwarded-For is trusted",
    reason:
      "none: anyone can forge that header, and token networks and per-address limits rely on it. Code of deployments has this machine's addresses, so a proxy on this machine also needs the secret below. Without that secret, name only networks that contain no node of the platform: a deployment on one node could forge its address to the others",
  }),
  proxySecret: optional({
    variable: "TESSERA_PROXY_SECRET",
    shownDefault: "none",
    parse: values.headerSecret,
    isSecret: () => true,
    summary:
      "secret that trusted proxies send with each request, in the header Tessera-Proxy-Secret",
    reason:
      "required if trusted proxies run on this machine; nginx: proxy_set_header Tessera-Proxy-Secret …, Caddy: header_up Tessera-Proxy-Secret …",
  }),
  cors: setting({
    flag: "--cors <origins>",
    variable: "TESSERA_CORS",
    fallback: "",
    parse: values.origins,
    summary: "comma-separated origins whose pages may call deployments from a browser; * is any",
    reason:
      "none: otherwise a page could reach whatever its reader's browser can. Cookies are never accepted, pages send a token",
  }),
  blobs: BLOBS_SETTING,
  nativeCode: setting({
    flag: "--native-code <answer>",
    variable: "TESSERA_NATIVE_CODE",
    fallback: "refuse",
    parse: values.oneOf(["refuse", "allow"]),
    summary: "whether deployments may contain native code: refuse or allow",
    reason: "native code bypasses the permissions that keep workers away from the platform's files",
  }),
  sandbox: SANDBOX_SETTING,
  ...PYTHON_SETTINGS,
  allowEgress: setting({
    flag: "--allow-egress <hosts>",
    variable: "TESSERA_ALLOW_EGRESS",
    fallback: "",
    parse: values.hostRules,
    summary:
      "comma-separated hosts that deployments may reach although they are not public, such as 10.0.0.0/8,127.0.0.1:5432,db.internal",
    reason:
      "none: loopback, link-local and private addresses lead to this machine, to the metadata of a cloud and to services that trust their neighbours. Holds where the kernel's sandbox does",
  }),
  maxWorkers: optional({
    flag: "--max-workers <number>",
    variable: "TESSERA_MAX_WORKERS",
    shownDefault: "64 for each core",
    parse: values.integer(1, 10_000),
    summary: "maximum number of workers on this node",
    reason:
      "even idle workers take processor time of the node. Deployments that find no room wait for it; idle workers beyond the minimum of their deployment make room for them",
  }),
  maxMemory: optional({
    flag: "--max-memory <size>",
    variable: "TESSERA_MAX_MEMORY",
    shownDefault: "three quarters of the machine's or container's memory",
    parse: values.size(96 * MEBIBYTE, 1024 * GIBIBYTE),
    summary: "maximum memory that the workers on this node use together, as measured",
    reason:
      "the rest is for the node, the database's cache and the system. Limits of workers are not summed up, as most use little of theirs",
  }),
  maxWorkersPerOrganization: optional({
    flag: "--max-workers-per-organization <number>",
    variable: "TESSERA_MAX_WORKERS_PER_ORGANIZATION",
    shownDefault: "three quarters of those of the node",
    parse: values.integer(1, 10_000),
    summary: "maximum number of workers of one organization on this node",
    reason:
      "no organization can leave the others without room; where there is only one, set it to that of the node",
  }),
  maxMemoryPerOrganization: optional({
    flag: "--max-memory-per-organization <size>",
    variable: "TESSERA_MAX_MEMORY_PER_ORGANIZATION",
    shownDefault: "three quarters of that of the node",
    parse: values.size(96 * MEBIBYTE, 1024 * GIBIBYTE),
    summary: "maximum memory that the workers of one organization use on this node, as measured",
    reason: "as for the number of workers",
  }),
  maxWorkersPerDeployment: setting({
    flag: "--max-workers-per-deployment <number>",
    variable: "TESSERA_MAX_WORKERS_PER_DEPLOYMENT",
    fallback: "100",
    parse: values.integer(1, 100),
    summary: "maximum number of workers that a deployment may request, on all nodes together",
    reason: "the API's own maximum: lower it where developers share your machines",
  }),
  maxRetention: setting({
    flag: "--max-retention <time>",
    variable: "TESSERA_MAX_RETENTION",
    fallback: "365d",
    parse: values.duration(1_000, 365 * DAY_MS),
    summary:
      "how long results are kept at most: deployments and submits that ask for more are refused, and endpoints that do are held to it",
    reason: "the API's own maximum: lower it where results fill your disk",
  }),
  maxMemoryPerWorker: setting({
    flag: "--max-memory-per-worker <size>",
    variable: "TESSERA_MAX_MEMORY_PER_WORKER",
    fallback: "64GiB",
    parse: values.size(64 * MEBIBYTE, 64 * GIBIBYTE),
    summary: "maximum memory per worker that a deployment may request",
    reason: "the API's own maximum",
  }),
  maxJson: setting({
    flag: "--max-json <size>",
    variable: "TESSERA_MAX_JSON",
    fallback: "64MiB",
    parse: values.size(64 * 1024, MAX_JSON_OPTION_BYTES),
    summary: "largest JSON body that an endpoint may ask for (its option max_json)",
    reason: "what BentoML's files have; it is held in memory, and stored with tasks",
  }),
  maxCpuPerWorker: setting({
    flag: "--max-cpu-per-worker <number>",
    variable: "TESSERA_MAX_CPU_PER_WORKER",
    fallback: "64",
    parse: values.decimal(0.1, 64),
    summary: "maximum CPUs per worker that a deployment may request; 0.5 is half of one",
    reason: "the API's own maximum",
  }),
  maxProcessesPerWorker: setting({
    flag: "--max-processes-per-worker <number>",
    variable: "TESSERA_MAX_PROCESSES_PER_WORKER",
    fallback: "256",
    parse: values.integer(0, MAX_PROCESSES),
    summary:
      "maximum number of processes per worker, besides its own, that a deployment or its code may request; 0 allows none",
    reason:
      "enough for a pool on every core of a large machine; with 16 threads each, a few workers of 1,000, the API's own maximum, take all that the kernel has",
  }),
  maxDeployments: setting({
    flag: "--max-deployments <number>",
    variable: "TESSERA_MAX_DEPLOYMENTS",
    fallback: "1000",
    parse: values.integer(1, 1_000),
    summary: "maximum number of deployments of an organization",
    reason: "far more than anyone runs, and few enough to list",
  }),
  maxOrganizationStorage: setting({
    flag: "--max-organization-storage <size>",
    variable: "TESSERA_MAX_ORGANIZATION_STORAGE",
    fallback: "20GiB",
    parse: values.size(MEBIBYTE, 10_240 * GIBIBYTE),
    summary:
      "maximum size of the files of an organization in the blob store together: code, packages and weights of its deployments, each file once",
    reason:
      "the weights and packages of several services; one organization alone should not fill the disk",
  }),
  modelHub: setting({
    flag: "--model-hub <url>",
    variable: "TESSERA_MODEL_HUB",
    fallback: "https://huggingface.co",
    parse: values.origin,
    summary: "where models of hf:// are imported from: Hugging Face, or a mirror of it",
    reason:
      "the platform alone connects there; it may be at a private address, where its redirects go only with --allow-egress",
  }),
  modelBuckets: setting({
    flag: "--model-buckets <grants>",
    variable: "TESSERA_MODEL_BUCKETS",
    fallback: "",
    parse: bucketGrants,
    summary:
      "comma-separated places of S3 that organizations may import models from, each with the organization's name or * for all: acme=s3://weights/acme,*=s3://shared",
    reason:
      "none: the platform reads them with its own credentials, from the usual AWS sources, and TESSERA_S3_ENDPOINT; who may deploy in the organization reads all that is below",
  }),
  databaseWait: setting({
    flag: "--database-wait <time>",
    variable: "TESSERA_DATABASE_WAIT",
    fallback: "60s",
    parse: values.duration(0, 3_600_000),
    summary: "how long the start waits for a Postgres that does not answer",
    reason:
      "after a failover, a restart of both, or in a composition of containers, it answers soon; a wrong password or name ends the start at once",
  }),
  logLevel: setting({
    flag: "--log-level <level>",
    variable: "TESSERA_LOG_LEVEL",
    fallback: "info",
    parse: values.oneOf(LOG_LEVELS),
    summary: `${LOG_LEVELS.join(", ")}`,
    reason: "calls are logged at debug, so that what needs attention stands out",
  }),
  accessLog: setting({
    flag: "--access-log <answer>",
    variable: "TESSERA_ACCESS_LOG",
    fallback: "off",
    parse: values.oneOf(["on", "off"]),
    summary: "whether calls are logged at info: on or off",
    reason: "busy platforms answer thousands a second; metrics and traces count them all",
  }),
  sessionLifetime: setting({
    flag: "--session-lifetime <time>",
    variable: "TESSERA_SESSION_LIFETIME",
    fallback: "14d",
    parse: values.duration(5 * 60_000, 90 * DAY_MS),
    summary: "how long a person stays signed in",
    reason: "long enough to be convenient; pages that show secrets ask for the password again",
  }),
  gpuStay: setting({
    flag: "--gpu-stay <time>",
    variable: "TESSERA_GPU_STAY",
    fallback: "60s",
    parse: values.duration(0, DAY_MS),
    summary:
      "how long a worker keeps its GPU at least before, when it is idle, it gives it to a deployment that waits for one",
    reason:
      "a model takes seconds to minutes to load: two deployments that are called in turn would do little else",
  }),
  maxCache: setting({
    flag: "--max-cache <size>",
    variable: "TESSERA_MAX_CACHE",
    fallback: "20GiB",
    parse: values.size(0, 10_240 * GIBIBYTE),
    summary:
      "maximum disk space of what the workers of a deployment keep on this machine between them and beyond their ends (`TESSERA_CACHE`), such as weights that a library downloads; 0: they keep nothing",
    reason: "a few large models; above it, the files that were not used for longest are deleted",
  }),
  maxModels: setting({
    flag: "--max-models <size>",
    variable: "TESSERA_MAX_MODELS",
    fallback: "100GiB",
    parse: values.size(0, 102_400 * GIBIBYTE),
    summary:
      "maximum disk space of the models of deployments on this machine together, each version once; 0: deployments with models do not start here",
    reason:
      "several large models; above it, those that no worker has and that were not used for longest are deleted",
  }),
  readyTimeout: setting({
    flag: "--ready-timeout <time>",
    variable: "TESSERA_READY_TIMEOUT",
    fallback: "10m",
    parse: values.duration(MIN_READY_TIMEOUT_MS, MAX_READY_TIMEOUT_MS),
    summary:
      "how long a service may take to load where neither its code nor its deployment says, on this node and in workers that join it",
    reason:
      "large models need minutes; a service that hangs while it loads keeps others of the node from starting meanwhile",
  }),
  drainDelay: setting({
    flag: "--drain-delay <time>",
    variable: "TESSERA_DRAIN_DELAY",
    fallback: "5s",
    parse: values.duration(0, 600_000),
    summary: "how long the server goes on serving after SIGTERM, while /readyz is 503",
    reason:
      "load balancers need a few seconds to see that a node is not ready; Ctrl-C does not wait",
  }),
  drainTime: setting({
    flag: "--drain-time <time>",
    variable: "TESSERA_DRAIN_TIME",
    fallback: "10s",
    parse: values.duration(0, 600_000),
    summary: "how long running calls may continue when the server stops",
    reason: "container runtimes kill a process 10 s or more after asking it to stop",
  }),
  bodyBudget: setting({
    flag: "--body-budget <size>",
    variable: "TESSERA_BODY_BUDGET",
    fallback: "512MiB",
    parse: values.size(16 * MEBIBYTE, 64 * GIBIBYTE),
    summary: "maximum total size of the bodies of all running requests",
    reason:
      "128 of the largest JSON bodies at a time; beyond that, callers are asked to retry, because a node that runs out of memory fails for everyone",
  }),
  maxConnections: optional({
    flag: "--max-connections <number>",
    variable: "TESSERA_MAX_CONNECTIONS",
    shownDefault: "half of the files that the process may have open, at most 20000",
    parse: values.integer(1, 1_000_000),
    summary: "maximum number of open connections; further ones are closed at once",
    reason:
      "each caller that waits for a task holds one; the other half of the files is for the database, workers and files",
  }),
  maxConnectionsPerAddress: optional({
    flag: "--max-connections-per-address <number>",
    variable: "TESSERA_MAX_CONNECTIONS_PER_ADDRESS",
    shownDefault: "a quarter of all",
    parse: values.integer(1, 1_000_000),
    summary: "maximum number of open connections of one address, an IPv6 address with its /64",
    reason:
      "one caller cannot take them all; trusted proxies are exempt, because they connect for many",
  }),
  metricsToken: optional({
    variable: "TESSERA_METRICS_TOKEN",
    shownDefault: "none",
    parse: values.text,
    isSecret: () => true,
    summary: "bearer token that /metrics of this node requires",
    reason:
      "the page shows the metrics of every organization, and code of deployments runs on the same machine: without a token, every request is refused",
  }),
  prometheusUrl: optional({
    variable: "PROMETHEUS_URL",
    shownDefault: "none",
    parse: values.prometheus,
    isSecret: () => true,
    summary: "Prometheus that scrapes all nodes, queried for what organizations read at /federate",
    reason:
      "without it the nodes answer themselves; the address may contain a user and a password, so it has no flag",
  }),
  labels: setting({
    flag: "--label <label=value>",
    variable: "TESSERA_LABELS",
    fallback: "",
    repeatable: true,
    parse: values.machineLabels,
    summary:
      "a label of this machine, such as gpu=h200, or several with commas; repeatable: deployments that require labels run only on machines that have them",
    reason: "none: a deployment that requires no label runs on every node",
  }),
  externalLabels: setting({
    flag: "--external-labels <labels>",
    variable: "TESSERA_EXTERNAL_LABELS",
    fallback: "",
    parse: values.labels,
    summary: "labels that /federate adds to series without them, such as region=eu,team=search",
    reason: "none: only useful to tell platforms apart in a Prometheus that collects from several",
  }),
  ...OIDC_SETTINGS,
  organizationCreators: optional({
    flag: "--organization-creators <who>",
    variable: "TESSERA_ORGANIZATION_CREATORS",
    shownDefault: "admins, and operator once there are two organizations",
    parse: values.oneOf(ORGANIZATION_CREATORS),
    summary:
      "who may create organizations: anyone, admins (of any organization) or operator (tessera admin create-organization)",
    reason:
      "each organization has quotas and a name of its own, so that one person with many of them takes from all others",
  }),
  ...MAIL_SETTINGS,
  ...TRACING_SETTINGS,
} as const satisfies Settings;
