/** A node of the platform, as `tessera start` runs it: put together, started in order, ended in the opposite one. */
import { announceChanges, ChangeFeed } from "../auth/changes.ts";
import { FailureLimiter } from "../auth/failures.ts";
import { type KeyRing, loadKeys } from "../auth/keys.ts";
import { UseRecorder } from "../auth/uses.ts";
import { Verifier } from "../auth/verifier.ts";
import type { StartConfig, StartSecrets } from "../config/config.ts";
import { pages } from "../console/pages.ts";
import { playground } from "../console/playground.ts";
import type { Log } from "../log/log.ts";
import { createLog } from "../log/pino.ts";
import { observeProcess } from "../metrics/process.ts";
import { choosePort, listen } from "../server/bind.ts";
import { deploymentMetrics, onKnownHosts, serveDeployments } from "../server/deployments.ts";
import { type OidcOptions, signInMethods } from "../server/oidc/plugin.ts";
import { OidcProvider } from "../server/oidc/provider.ts";
import { onlyOn } from "../server/protocols.ts";
import { ownAddressesIn, trustedAddresses } from "../server/proxies.ts";
import { Readiness } from "../server/readiness.ts";
import { createServer, type ServerOptions } from "../server/server.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import { createIdSource } from "../tasks/id.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { version } from "../version.ts";
import { platformApi } from "./api.ts";
import { keysPath, openDataFolder } from "./folder.ts";
import { appUrls, type PlatformHostingOptions, startHosting } from "./hosting.ts";
import { measuredStorage, monitoring, nodeMetrics, startFederation } from "./metrics.ts";
import { startAccountsPruner } from "./pruner.ts";
import { newSetupCode } from "./setup-link.ts";

/** What is left of open connections after the drain. */
const CLOSE_GRACE_MS = 2_000;

/** A node of the platform that is running. */
export interface StartedPlatform {
  readonly config: StartConfig;
  readonly version: string;
  /** Where browsers reach it, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** The database and the keys, as they may be shown. */
  readonly database: string;
  readonly keys: string;
  /** Whether trusted proxies have to bring a secret. */
  readonly proxySecret: boolean;
  /** For the setup link, while nobody has set the platform up. */
  readonly setupCode: string | undefined;
  /** Drains and ends everything; the same promise every time. */
  stop(): Promise<void>;
}

/** What the composition root brings: the adapters. */
export interface OpenedAdapters {
  readonly storage: Storage;
  readonly notifier: Notifier | undefined;
  readonly openBlobs: PlatformHostingOptions["openBlobs"];
  readonly openLocalBlobs: PlatformHostingOptions["openLocalBlobs"];
  /** Undefined where nothing is traced. */
  readonly openTracing: (log: Log) => Promise<Tracing | undefined>;
  /** The database as it may be shown. */
  readonly shown: string;
}

/**
 * Starts a node. Rejects with one message when the data folder, the database,
 * the keys or the port are not usable; then nothing is left running.
 */
export async function runPlatform(
  config: StartConfig,
  secrets: StartSecrets,
  open: (database: string) => OpenedAdapters,
): Promise<StartedPlatform> {
  const log = createLog(config.logLevel);
  const resources = new AsyncDisposableStack();
  try {
    openDataFolder(config.dataFolder);
    const { storage: opened, notifier, shown, openTracing, ...stores } = open(secrets.database);
    const tracing = await openTracing(log);
    if (tracing) {
      resources.use(tracing);
    }
    resources.use(opened);
    await opened.start();
    if (notifier) {
      resources.use(notifier).start();
    }
    const now = Date.now;
    const newId = createIdSource();
    const port = await choosePort(config);
    const metrics = nodeMetrics(port, now);
    resources.use(observeProcess(metrics));
    const storage = measuredStorage(opened, metrics);
    const { accounts } = storage;
    const keys = await openKeys(config, secrets, accounts);
    const changes = resources.use(new ChangeFeed({ accounts, notifier, log }));
    await changes.start();
    const uses = resources.use(new UseRecorder({ accounts, log }));
    const failures = new FailureLimiter();
    const url = config.publicUrl ?? `http://localhost:${port}`;
    const secureCookies = url.startsWith("https:");
    const verifier = resources.use(
      new Verifier({
        accounts,
        keys,
        changes,
        uses,
        failures,
        log,
        now,
        secureCookies,
        onVerified: (verification) => metrics.tokenVerified(verification),
      }),
    );
    const announced = announceChanges(accounts, changes);
    resources.use(startAccountsPruner({ accounts, log, now }));
    const readiness = new Readiness();
    // A node that stops is not ready, whatever its last heartbeats say.
    let stopped = false;
    resources.defer(() => {
      stopped = true;
      readiness.set(false);
    });

    const { sessionLifetimeMs } = config;
    const signIn = { accounts: announced, keys, now, newId, sessionLifetimeMs };
    const oidc = oidcOf(config.oidc, { ...signIn, url, secrets, secure: secureCookies });
    const shutdown = new AbortController();
    // People who try it want to see calls; whoever collects logs has to ask for them.
    const accessLevel = process.stderr.isTTY ? "info" : "debug";
    const hosted = resources.use(
      await startHosting({
        config,
        storage,
        notifier,
        keys,
        metrics,
        tracing,
        changes,
        log,
        now,
        newId,
        port,
        ...stores,
        onDatabase: (answers) => readiness.set(answers && !stopped),
      }),
    );
    const { hosting, blobs } = hosted;
    const serving = serveDeployments({ ...config, version });
    const federation = startFederation({
      config,
      secrets,
      metrics,
      storage: opened,
      log,
      now,
      resources,
      isAlone: hosted.isAlone,
    });
    const api = platformApi({
      ...signIn,
      publicUrl: url,
      secureCookies,
      // Passwords can be guessed, tokens cannot: fewer attempts begin before one has failed.
      failures: new FailureLimiter({ underWay: 10 }),
      deviceLogins: new FailureLimiter(),
      log,
      federation,
      hosting: announceChanges(storage.hosting, changes),
      blobs,
      urlOf: appUrls(url, config.appsDomain),
      allowsNativeCode: config.allowsNativeCode,
      ceilings: config.ceilings,
    });
    const { app, listener } = await createServer({
      services: serving.services,
      platformServices: api,
      directory: hosting,
      appsDomain: config.appsDomain,
      authenticate: verifier.authenticate,
      standalone: false,
      sameSiteOnly: false,
      allowedOrigins: config.allowedOrigins,
      platformDomain: config.platformDomain ?? new URL(url).hostname,
      ...proxies(config, secrets, log),
      plugins: [
        ...serving.plugins,
        onlyOn("deployment", onKnownHosts(hosting, playground)),
        onlyOn("deployment", deploymentMetrics(metrics)),
        onlyOn(
          "platform",
          monitoring({ metrics, federation, readiness, operatorToken: secrets.metricsToken }),
        ),
        onlyOn("platform", pages),
        onlyOn("platform", (server, { contextValues }) =>
          signInMethods(server, { accounts, oidc, contextValues }),
        ),
      ],
      health: readiness,
      log,
      bodyBudgetBytes: config.bodyBudgetBytes,
      accessLog: log.isLevelEnabled(accessLevel) ? accessLevel : undefined,
      shutdownSignal: shutdown.signal,
    });
    resources.defer(async () => {
      shutdown.abort();
      await listener.close(CLOSE_GRACE_MS);
      await app.close();
    });
    await listen(listener.server, { port, host: config.host });
    warn(config, log);
    const setupCode = await newSetupCode(accounts, now);
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      stopped = true;
      readiness.set(false);
      listener.stopAccepting();
      await hosting.drain(config.drainMs);
      await listener.close(CLOSE_GRACE_MS);
      await resources.disposeAsync();
    };
    return {
      config,
      version,
      url,
      port,
      database: shown,
      keys: secrets.keys === undefined ? keysPath(config.dataFolder) : "TESSERA_KEYS",
      proxySecret: secrets.proxySecret !== undefined,
      setupCode,
      stop: () => (stopping ??= stop()),
    };
  } catch (err) {
    await resources.disposeAsync();
    throw err;
  }
}

/** A platform that is set up has its keys: new ones would verify none of its tokens. */
export async function openKeys(
  { dataFolder }: Pick<StartConfig, "dataFolder">,
  { keys }: Pick<StartSecrets, "keys">,
  accounts: Pick<Accounts, "needsSetup">,
): Promise<KeyRing> {
  return keys === undefined
    ? loadKeys({ path: keysPath(dataFolder), create: await accounts.needsSetup() })
    : loadKeys({ env: keys });
}

function oidcOf(
  config: StartConfig["oidc"],
  options: Omit<OidcOptions, "provider" | "name"> & {
    readonly url: string;
    readonly secrets: StartSecrets;
  },
): OidcOptions | undefined {
  if (config === undefined) {
    return undefined;
  }
  const { issuer, clientId, name } = config;
  const { url, secrets } = options;
  const redirectUri = `${url}/auth/oidc/callback`;
  const { oidcClientSecret: clientSecret } = secrets;
  return {
    ...options,
    name,
    provider: new OidcProvider({ issuer, clientId, clientSecret, redirectUri }),
  };
}

/** Whose word is taken for where requests come from. */
function proxies(
  { trustedProxies: networks }: StartConfig,
  { proxySecret }: StartSecrets,
  log: ReturnType<typeof createLog>,
): Pick<ServerOptions, "trustProxy" | "proxySecret"> {
  if (networks.length === 0) {
    return {};
  }
  const trustProxy = trustedAddresses({ networks, hasSecret: proxySecret !== undefined });
  if (proxySecret !== undefined) {
    return { trustProxy, proxySecret };
  }
  const addresses = ownAddressesIn(networks);
  if (addresses.length > 0) {
    log.warn(
      { addresses },
      "the trusted proxies' networks have addresses of this machine, which deployments have, too: a proxy that runs here is believed only with TESSERA_PROXY_SECRET, and without it so are deployments on other nodes in these networks: name the proxies alone, or set it",
    );
  }
  return { trustProxy };
}

/** Others can reach it, and nobody said how: their links and cookies would not work. */
function warn({ host, publicUrl }: StartConfig, log: ReturnType<typeof createLog>): void {
  if (publicUrl === undefined && !["127.0.0.1", "::1", "localhost"].includes(host)) {
    log.warn(
      { host },
      "others may reach this platform, but its links say localhost: set --public-url to the address that they use",
    );
  }
}
