/** Runs `tessera start`: a node of the platform, started in order and ended in the opposite order. */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { documentWriter } from "../api/openapi/writer.ts";
import { announceChanges, ChangeFeed } from "../auth/change-feed.ts";
import { FailureLimiter } from "../auth/failures.ts";
import type { KeyRing } from "../auth/keys.ts";
import { createCode, digestCode } from "../auth/one-time-codes.ts";
import { TaskAccess } from "../auth/task-access.ts";
import { UseRecorder } from "../auth/token-uses.ts";
import { Verifier } from "../auth/verifier.ts";
import { NEEDS_SANDBOX, type StartConfig, type StartSecrets } from "../config/start.ts";
import type { ModelSource } from "../hosting/models/source.ts";
import { modelSources } from "../hosting/models/sources.ts";
import type { Log } from "../log/log.ts";
import { observeProcess } from "../metrics/process.ts";
import type { Gpu } from "../pool/gpus/gpus.ts";
import { NvidiaSmi } from "../pool/gpus/nvidia-smi.ts";
import { findSandbox, type Sandbox } from "../pool/sandbox/sandbox.ts";
import { authority, bindPort, holdsLocalhost, localUrl } from "../server/bind.ts";
import type { Mailer } from "../server/mail/mailer.ts";
import { type OidcOptions, type SignInPageOptions, signInMethods } from "../server/oidc/plugin.ts";
import { OidcProvider } from "../server/oidc/provider.ts";
import { consolePages } from "../server/pages/console.ts";
import { playground } from "../server/pages/playground.ts";
import { onlyOn, type ServerPlugin } from "../server/protocols.ts";
import { ownAddressesIn, trustedAddresses } from "../server/proxies.ts";
import type { ServerOptions } from "../server/server.ts";
import type { Accounts } from "../storage/accounts/accounts.ts";
import { Timer } from "../time/timer.ts";
import { version } from "../version.ts";
import { openMailer, openModelBuckets, shownDatabase } from "./adapters.ts";
import { keysPath, openDataFolder } from "./data-folder.ts";
import {
  behindMounts,
  deploymentMetrics,
  deploymentPage,
  serveDeployments,
} from "./deployment-routes.ts";
import { Health } from "./health.ts";
import { appUrls, type PlatformHosting, startHosting } from "./hosting.ts";
import { refuseIncomplete, tellOfLosses } from "./incomplete-data.ts";
import { openKeys } from "./keys.ts";
import { monitoring, startMonitoring } from "./metrics.ts";
import { CLOSE_GRACE_MS, type HttpOptions, type Node, openNode, serveHttp } from "./node.ts";
import { platformServices } from "./platform-services.ts";
import { openPython, type PythonHosting } from "./python.ts";

/** Sign-ins that may be under way from one address before one has failed. */
const MAX_SIGN_INS_UNDER_WAY = 10;

interface StopOptions {
  /** How long the node goes on serving before, unready. Default: not at all. */
  readonly delayMs?: number;
}

/** A node of the platform that is running. */
export interface StartedPlatform {
  readonly config: StartConfig;
  readonly version: string;
  /** Where browsers reach it, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** The host and the port that it listens on. */
  readonly listensOn: string;
  /** The database and the keys, as they may be shown. */
  readonly database: string;
  readonly keys: string;
  /** Whether trusted proxies have to bring a secret. */
  readonly proxySecret: boolean;
  /** What holds the workers of deployments. */
  readonly sandbox: Sandbox;
  /** Those of the machine. */
  readonly gpus: readonly Gpu[];
  /** What services in Python run with; undefined where they do not run. */
  readonly python: PythonHosting | undefined;
  /** For the setup link, while nobody has set the platform up. */
  readonly setupCode: string | undefined;
  /** Drains and ends everything; the same promise every time. */
  stop(options?: StopOptions): Promise<void>;
}

/**
 * Starts a node. Rejects with one message when the data folder, the database,
 * the keys or the port are not usable; then nothing is left running.
 */
export async function startPlatform(
  config: StartConfig,
  secrets: StartSecrets,
): Promise<StartedPlatform> {
  const resources = new AsyncDisposableStack();
  try {
    openDataFolder(config.dataFolder);
    refuseIncomplete(config, secrets);
    const sandbox = await findSandbox(config.sandbox, config.searchPath);
    const { host, sharedPort } = config;
    if (sharedPort !== undefined && sandbox.level !== "kernel") {
      throw new Error(NEEDS_SANDBOX);
    }
    // First, and so released last: no worker may ever listen there.
    const bound = resources.use(await bindPort(config));
    const { port } = bound;
    const url = config.publicUrl ?? localUrl({ port: sharedPort ?? port, host });
    const { database, directDatabase, cells } = secrets;
    const node = await openNode(
      { ...config, database, directDatabase, cells, port, tracingSecrets: secrets.tracing },
      resources,
    );
    await tellOfLosses(node.unmeasured, node.log);
    resources.use(observeProcess(node.metrics));
    warnOfHost(config, node.log);
    const identity = await openIdentity(node, {
      openKeys: (accounts) => openKeys(config, secrets, accounts),
      secureCookies: isSecure(url),
      resources,
    });
    const { keys } = identity;
    const health = new Health(resources);
    // Unready at the first call that it does not answer, until the next heartbeat gets through.
    node.refusals.on("unavailable", (found) => health.databaseRefused(found));
    const mailer = await openMailer(secrets.smtp);
    const { packages } = secrets;
    const python = await openPython({ config, packages, sandbox }, node, resources);
    const { log } = node;
    const gpus = resources.use(await NvidiaSmi.open({ searchPath: config.searchPath, log }));
    const sources = modelSources(config, resources.use(await openModelBuckets(config)));
    const hosted = resources.use(
      await startHosting({
        config,
        database,
        node,
        keys,
        changes: identity.changes,
        port,
        platformUrl: url,
        sandbox,
        python,
        gpus,
        sources,
        mailer,
        onDatabase: (answers) => health.databaseAnswers(answers),
        onMachineDrained: (leaves) => health.machineDrained(leaves),
        onBlobsLacking: (lacking) => health.blobsLack(lacking),
      }),
    );
    const listener = await serveHttp(
      httpOptions(config, secrets, {
        node,
        keys,
        identity,
        mailer,
        hosted,
        health,
        sandbox,
        python,
        sources,
        url,
        resources,
      }),
      { ...node, bound },
      resources,
    );
    const setupCode = await newSetupCode(node.storage.accounts, node.now);
    // Last: nobody chooses between those who share it, so it is for nodes that serve.
    const shared =
      sharedPort === undefined
        ? undefined
        : resources.use(await bindPort({ host, port: sharedPort, shared: true }));
    shared?.handTo(listener.server);
    let stopping: Promise<void> | undefined;
    const stop = async (delayMs: number): Promise<void> => {
      health.stop();
      void shared?.[Symbol.asyncDispose]();
      await sleep(delayMs);
      listener.retire();
      await hosted.hosting.drain(config.drainMs);
      node.log.info("the deployments have drained");
      await listener.close(CLOSE_GRACE_MS);
      node.log.info("the port is closed");
      await resources.disposeAsync();
    };
    return {
      config,
      version,
      url,
      port,
      listensOn: [port, ...(sharedPort === undefined ? [] : [sharedPort])]
        .map((each) => authority({ port: each, host }))
        .join(", and with other nodes on "),
      database: shownDatabase(database),
      keys: secrets.keys === undefined ? keysPath(config.dataFolder) : "TESSERA_KEYS",
      proxySecret: secrets.proxySecret !== undefined,
      sandbox,
      gpus: gpus.list,
      python,
      setupCode,
      stop: ({ delayMs = 0 } = {}) => (stopping ??= stop(delayMs)),
    };
  } catch (err) {
    await resources.disposeAsync();
    throw err;
  }
}

/** Cookies are for https only where browsers reach the platform by https. */
const isSecure = (url: string): boolean => url.startsWith("https:");

/** Who calls, and by what they prove it. */
interface Identity {
  readonly keys: KeyRing;
  readonly changes: ChangeFeed;
  readonly verifier: Verifier;
  /** The accounts; every change to them is told to this node at once. */
  readonly accounts: Accounts;
}

async function openIdentity(
  { storage, notifier, metrics, log, now }: Node,
  parts: {
    readonly openKeys: (accounts: Accounts) => Promise<KeyRing>;
    readonly secureCookies: boolean;
    readonly resources: AsyncDisposableStack;
  },
): Promise<Identity> {
  const { secureCookies, resources } = parts;
  const { accounts } = storage;
  const keys = await parts.openKeys(accounts);
  const changes = resources.use(new ChangeFeed({ accounts, notifier, log }));
  await changes.start();
  const verifier = resources.use(
    new Verifier({
      accounts,
      keys,
      changes,
      uses: resources.use(new UseRecorder({ accounts, log })),
      failures: new FailureLimiter(),
      log,
      now,
      secureCookies,
      onVerified: (verification) => metrics.tokenVerified(verification),
    }),
  );
  resources.use(startAccountsPruner({ accounts, log, now }));
  return { keys, changes, verifier, accounts: announceChanges(accounts, changes) };
}

interface HttpParts {
  readonly node: Node;
  readonly keys: KeyRing;
  readonly identity: Identity;
  /** Undefined where no mail is sent. */
  readonly mailer: Mailer | undefined;
  readonly hosted: PlatformHosting;
  readonly health: Health;
  readonly sandbox: Sandbox;
  readonly python: PythonHosting | undefined;
  readonly sources: readonly ModelSource[];
  /** Where browsers reach the platform. */
  readonly url: string;
  readonly resources: AsyncDisposableStack;
}

function httpOptions(config: StartConfig, secrets: StartSecrets, parts: HttpParts): HttpOptions {
  const { node, keys, identity, mailer, hosted, health, sandbox, python, sources, url, resources } =
    parts;
  const { accounts, verifier, changes } = identity;
  const { metrics, log, now, newId, unmeasured } = node;
  const { hosting, isAlone } = hosted;
  const { readiness } = health;
  const secureCookies = isSecure(url);
  const { sessionLifetimeMs } = config;
  const oidc = oidcOf(config.oidc, {
    accounts,
    keys,
    mailer,
    log,
    now,
    newId,
    sessionLifetimeMs,
    publicUrl: url,
    secrets,
    secure: secureCookies,
  });
  const urlOf = appUrls(url, config.appsDomain);
  const trusted = proxies(config, secrets, log);
  const { federation, history } = startMonitoring({
    config,
    secrets,
    metrics,
    storage: unmeasured,
    log,
    now,
    resources,
    isAlone,
  });
  const operatorToken = secrets.metricsToken;
  const metricsPages = monitoring({ metrics, federation, readiness, operatorToken });
  const serving = serveDeployments({
    ...config,
    version,
    taskAccess: new TaskAccess({
      keys: (purpose) => keys.derived(purpose),
      recall: verifier.recall,
      now,
    }),
    urlOf,
    audit: { accounts, now, newId },
    platform: {
      directory: hosting,
      write: documentWriter(() => [...serving.services, ...ownServices], {
        secureCookies,
        version,
      }),
    },
  });
  const plugins = [
    ...serving.plugins,
    onlyOn("deployment", deploymentPage(behindMounts(playground, config))),
    onlyOn("deployment", deploymentMetrics(metrics)),
    onlyOn("platform", metricsPages),
    onlyOn("platform", consolePages),
    onlyOn("platform", signInPlugin({ accounts: node.storage.accounts, oidc })),
  ];
  const ownServices = platformServices(
    {
      accounts,
      hosting: announceChanges(node.storage.hosting, changes),
      tasks: node.storage,
      directory: hosting,
      changes,
      artifactOf: (deploymentId) => hosting.artifactOf(deploymentId),
      blobs: hosted.blobs,
      federation,
      history,
      keys,
      mailer,
      // Passwords can be guessed, tokens cannot: fewer attempts begin before one has failed.
      failures: new FailureLimiter({ underWay: MAX_SIGN_INS_UNDER_WAY }),
      deviceLogins: new FailureLimiter(),
      log,
      now,
      newId,
    },
    {
      sessionLifetimeMs,
      publicUrl: url,
      secureCookies,
      urlOf,
      allowsNativeCode: config.allowsNativeCode,
      sandbox: sandbox.level,
      ...(python && { python }),
      ceilings: config.ceilings,
      modelSources: sources,
      allowedEgress: config.allowedEgress,
      silenceMs: config.silenceMs,
      organizationCreators: config.organizationCreators,
      shown: config.shown,
    },
  );
  return {
    services: serving.services,
    platformServices: ownServices,
    directory: hosting,
    appsDomain: config.appsDomain,
    authenticate: verifier.authenticate,
    onAccessChange: (changed) => void changes.listen(() => changed()),
    standalone: false,
    sameSiteOnly: false,
    allowedOrigins: config.allowedOrigins,
    platformDomain: config.platformDomain ?? new URL(url).hostname,
    // Without a public address, nobody knows by what names others come.
    ...(config.publicUrl !== undefined && {
      hostnames: [new URL(config.publicUrl).hostname, config.host, hostname()],
    }),
    ...trusted,
    plugins,
    health: readiness,
    healthDetails: { sandbox: sandbox.level, memory: sandbox.memoryHeldBy },
    bodyBudgetBytes: config.bodyBudgetBytes,
    connections: config.connections,
    logsCalls: config.logsCalls,
  };
}

/** The ways to sign in, on the platform's hosts. */
function signInPlugin(options: Omit<SignInPageOptions, "contextValues">): ServerPlugin {
  return (app, { contextValues }) => signInMethods(app, { ...options, contextValues });
}

function oidcOf(
  config: StartConfig["oidc"],
  options: Omit<OidcOptions, "provider" | "name"> & {
    readonly secrets: StartSecrets;
  },
): OidcOptions | undefined {
  if (config === undefined) {
    return undefined;
  }
  const { issuer, clientId, name } = config;
  const { publicUrl, secrets } = options;
  const redirectUri = `${publicUrl}/auth/oidc/callback`;
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
  log: Log,
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

/** What links and addresses of deployments promise, and this host does not hold. */
function warnOfHost({ host, publicUrl, appsDomain }: StartConfig, log: Log): void {
  if (publicUrl !== undefined) {
    return;
  }
  if (!["127.0.0.1", "::1", "localhost"].includes(host)) {
    log.warn(
      { host },
      "others may reach this platform, but its links are for this machine: set --public-url to the address that they use",
    );
  }
  if (!holdsLocalhost(host) && `.${appsDomain}`.endsWith(".localhost")) {
    log.warn(
      { host, appsDomain },
      "deployments have addresses below localhost, of which this host is a part: another program of this machine could take calls at the rest; use --host localhost, or another --apps-domain",
    );
  }
}

/**
 * The code with which the first person sets the platform up; undefined when
 * it is set up. A new one each time, because the last one may stand in
 * somebody's scrollback.
 */
async function newSetupCode(
  accounts: Pick<Accounts, "needsSetup" | "putSetupCode">,
  now: () => number,
): Promise<string | undefined> {
  if (!(await accounts.needsSetup())) {
    return undefined;
  }
  const code = createCode();
  const isOpen = await accounts.putSetupCode({ digest: digestCode(code), nowMs: now() });
  return isOpen ? code : undefined;
}

/**
 * Expired rows of each kind of account data deleted in one transaction: bounds how long the
 * database is busy with it.
 */
const MAX_PRUNED_ACCOUNT_ROWS = 1_000;
/** Interval at which expired sessions, codes, invitations and tokens are deleted. */
const ACCOUNTS_PRUNE_INTERVAL_MS = 60_000;

/** Deletes sessions, codes and invitations that ended long ago. */
function startAccountsPruner(options: {
  readonly accounts: Pick<Accounts, "pruneAccounts">;
  readonly log: Log;
  readonly now: () => number;
}): Timer {
  const { accounts, log, now } = options;
  const round = async (): Promise<void> => {
    while (
      (await accounts.pruneAccounts({ nowMs: now(), limit: MAX_PRUNED_ACCOUNT_ROWS })) >=
      MAX_PRUNED_ACCOUNT_ROWS
    ) {}
  };
  return new Timer(ACCOUNTS_PRUNE_INTERVAL_MS, round, (err) =>
    log.error({ err }, "what ended long ago could not be deleted from the accounts"),
  );
}
