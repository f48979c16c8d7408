/** The settings of `tessera start` and `tessera admin`. */
import { optional, type Settings, setting } from "./settings.ts";
import { TRACING_SETTINGS } from "./tracing.ts";
import * as values from "./values.ts";
import { LOG_LEVELS } from "./values.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

/** What is needed to work on the platform's data, for every command that does. */
export const DATA_SETTINGS = {
  dataFolder: setting({
    flag: "--data <folder>",
    variable: "TESSERA_DATA",
    fallback: "./.tessera",
    parse: values.line,
    summary: "folder for the database file and the file of keys",
    reason:
      "beside whoever starts it, so that a first try leaves nothing elsewhere; its mode is 0700",
  }),
  database: optional({
    flag: "-d, --database <address>",
    variable: "DATABASE_URL",
    shownDefault: "tessera.db in the data folder",
    parse: values.database,
    isSecret: (text) => /^[^/]*:\/\/[^/]*:[^/]*@/.test(text),
    summary: "SQLite file, or postgres://user:password@host/database shared by any number of nodes",
    reason:
      "a file needs nothing else installed; others on the machine can see a command line, so give a password in the environment",
  }),
  keys: optional({
    variable: "TESSERA_KEYS",
    shownDefault: "keys.json in the data folder",
    parse: values.secret,
    isSecret: () => true,
    summary: "keys that digest and seal the values of tokens, as keys.json holds them",
    reason:
      "without it they are made at the first start, in a file of mode 0600; all nodes need the same ones",
  }),
} as const;

/** Every setting of `tessera start`, in the order in which they are shown. */
export const START_SETTINGS = {
  ...DATA_SETTINGS,
  host: setting({
    flag: "--host <host>",
    variable: "TESSERA_HOST",
    fallback: "127.0.0.1",
    parse: values.host,
    summary: "address to listen on; 0.0.0.0 is every one",
    reason: "reachable from this machine only, until you say otherwise",
  }),
  port: setting({
    flag: "-p, --port <port>",
    variable: "TESSERA_PORT",
    fallback: "3000",
    parse: values.integer(0, 65_535),
    summary: "port for HTTP, Connect and gRPC; 0 takes a free one",
    reason: "the same as that of `tessera serve`",
  }),
  publicUrl: optional({
    flag: "--public-url <url>",
    variable: "TESSERA_PUBLIC_URL",
    shownDefault: "http://localhost:<port>",
    parse: values.origin,
    summary: "where browsers and programs reach the platform",
    reason:
      "stands in links, and decides whether cookies are sent over TLS only: set it wherever others use the platform",
  }),
  platformDomain: optional({
    flag: "--platform-domain <domain>",
    variable: "TESSERA_PLATFORM_DOMAIN",
    shownDefault: "the host of the public URL",
    parse: values.domain,
    summary: "domain under which each organization has a host, <organization>.<domain>",
    reason: "needs a wildcard record in the name service; localhost has one on most machines",
  }),
  appsDomain: setting({
    flag: "--apps-domain <domain>",
    variable: "TESSERA_APPS_DOMAIN",
    fallback: "apps.localhost",
    parse: values.domain,
    summary: "domain under which deployments have their hosts",
    reason: "apart from the platform's own, so that a deployment's pages never get its cookies",
  }),
  trustedProxies: setting({
    flag: "--trusted-proxies <networks>",
    variable: "TESSERA_TRUSTED_PROXIES",
    fallback: "",
    parse: values.networks,
    summary: "proxies whose X-Forwarded-For is believed, with commas between them",
    reason:
      "none: anyone can write that header, and networks of tokens and limits by address rely on it; the code of deployments has this machine's addresses, so a proxy that runs here needs the secret below, too. Without that secret, name networks that hold no node of the platform: deployments on one could say to the others where their requests come from",
  }),
  proxySecret: optional({
    variable: "TESSERA_PROXY_SECRET",
    shownDefault: "none",
    parse: values.headerSecret,
    isSecret: () => true,
    summary:
      "secret that trusted proxies send with each request, as the header Tessera-Proxy-Secret",
    reason:
      "required where trusted proxies run on this machine; nginx: proxy_set_header Tessera-Proxy-Secret …, Caddy: header_up Tessera-Proxy-Secret …",
  }),
  cors: setting({
    flag: "--cors <origins>",
    variable: "TESSERA_CORS",
    fallback: "",
    parse: values.origins,
    summary:
      "origins whose pages may call deployments from a browser, with commas between them; * is all",
    reason:
      "none: a page could use what its reader's browser can reach. Cookies are never let through, pages bring a token",
  }),
  blobs: optional({
    flag: "--blobs <place>",
    variable: "TESSERA_BLOBS",
    shownDefault: "blobs in the data folder, or the Postgres database",
    parse: values.line,
    summary: "folder or s3://bucket/prefix for artifacts and large files",
    reason:
      "all nodes need the same place, which their Postgres is; credentials for S3 are found where the AWS tools have them",
  }),
  nativeCode: setting({
    flag: "--native-code <answer>",
    variable: "TESSERA_NATIVE_CODE",
    fallback: "refuse",
    parse: values.oneOf(["refuse", "allow"]),
    summary: "whether deployments may bring native code: refuse or allow",
    reason: "native code gets round the permissions that keep workers from the platform's files",
  }),
  maxWorkers: setting({
    flag: "--max-workers <number>",
    variable: "TESSERA_MAX_WORKERS",
    fallback: "100",
    parse: values.integer(1, 100),
    summary: "most workers that a deployment may ask for, on all nodes together",
    reason: "all that the API takes: set it where developers share machines of yours",
  }),
  maxMemory: setting({
    flag: "--max-memory <size>",
    variable: "TESSERA_MAX_MEMORY",
    fallback: "64GiB",
    parse: values.size(64 * MEBIBYTE, 64 * GIBIBYTE),
    summary: "most memory that a deployment may ask for, for each worker",
    reason: "all that the API takes; a node does not add up what its deployments may use",
  }),
  maxCpu: setting({
    flag: "--max-cpu <number>",
    variable: "TESSERA_MAX_CPU",
    fallback: "64",
    parse: values.decimal(0.1, 64),
    summary: "most processors that a deployment may ask for, for each worker; 0.5 is half of one",
    reason: "all that the API takes",
  }),
  maxDeployments: setting({
    flag: "--max-deployments <number>",
    variable: "TESSERA_MAX_DEPLOYMENTS",
    fallback: "1000",
    parse: values.integer(1, 1_000),
    summary: "most deployments that an organization may have",
    reason: "far more than anyone runs, and few enough to be listed",
  }),
  logLevel: setting({
    flag: "--log-level <level>",
    variable: "TESSERA_LOG_LEVEL",
    fallback: "info",
    parse: values.oneOf(LOG_LEVELS),
    summary: `${LOG_LEVELS.join(", ")}`,
    reason: "calls are logged at debug, on a terminal at info",
  }),
  sessionLifetime: setting({
    flag: "--session-lifetime <time>",
    variable: "TESSERA_SESSION_LIFETIME",
    fallback: "14d",
    parse: values.duration(5 * 60_000, 90 * DAY_MS),
    summary: "how long a person stays signed in",
    reason: "long enough not to be in the way; what shows secrets asks for the password again",
  }),
  drainTime: setting({
    flag: "--drain-time <time>",
    variable: "TESSERA_DRAIN_TIME",
    fallback: "10s",
    parse: values.duration(0, 600_000),
    summary: "how long calls under way may go on when the server stops",
    reason: "container runtimes kill a process 10 s or more after they asked it to stop",
  }),
  bodyBudget: setting({
    flag: "--body-budget <size>",
    variable: "TESSERA_BODY_BUDGET",
    fallback: "512MiB",
    parse: values.size(16 * MEBIBYTE, 64 * GIBIBYTE),
    summary: "what the bodies of all requests under way may take together",
    reason:
      "128 of the largest JSON at a time; beyond, callers are told to come again, because a node without memory ends for all",
  }),
  metricsToken: optional({
    variable: "TESSERA_METRICS_TOKEN",
    shownDefault: "none",
    parse: values.secret,
    isSecret: () => true,
    summary: "token that /metrics of this node asks for, as a bearer token",
    reason:
      "it shows the numbers of every organization, and the code of deployments runs on the same machine: without a token it answers nobody",
  }),
  prometheusUrl: optional({
    variable: "PROMETHEUS_URL",
    shownDefault: "none",
    parse: values.prometheus,
    isSecret: () => true,
    summary: "Prometheus that scrapes all nodes, asked for what organizations read at /federate",
    reason:
      "without it the nodes answer by themselves; it may have a user and a password in it, so it is not on the command line",
  }),
  externalLabels: setting({
    flag: "--external-labels <labels>",
    variable: "TESSERA_EXTERNAL_LABELS",
    fallback: "",
    parse: values.labels,
    summary: "labels that /federate adds to series without them, such as region=eu,team=search",
    reason: "none: they tell platforms apart where somebody collects from several",
  }),
  oidcIssuer: optional({
    flag: "--oidc-issuer <url>",
    variable: "TESSERA_OIDC_ISSUER",
    shownDefault: "none",
    parse: values.issuer,
    summary: "OpenID Connect provider with which people may sign in",
    reason:
      "people sign in with a password until you name one; the redirect to register there is <public URL>/auth/oidc/callback",
  }),
  oidcClientId: optional({
    flag: "--oidc-client-id <id>",
    variable: "TESSERA_OIDC_CLIENT_ID",
    shownDefault: "none",
    parse: values.line,
    summary: "what the provider calls this platform",
    reason: "required with an issuer",
  }),
  oidcClientSecret: optional({
    variable: "TESSERA_OIDC_CLIENT_SECRET",
    shownDefault: "none",
    parse: values.secret,
    isSecret: () => true,
    summary: "secret that the provider gave to this platform",
    reason: "none: a public client, protected by PKCE",
  }),
  oidcName: setting({
    flag: "--oidc-name <name>",
    variable: "TESSERA_OIDC_NAME",
    fallback: "single sign-on",
    parse: values.line,
    summary: "what the sign-in page calls the provider",
    reason: "as in “Sign in with Example Corp”",
  }),
  ...TRACING_SETTINGS,
} as const satisfies Settings;
