/**
 * The composition root: the only file that names concrete adapters. It puts
 * storage, workers and server together, starts them in order, and ends them
 * in the opposite order.
 */
import { once } from "node:events";
import type { Server } from "node:net";
import { dirname, resolve, sep } from "node:path";
import { allowEveryone, requireToken } from "./auth/shared-token.ts";
import { isPostgres, type Secrets, type ServeConfig } from "./config.ts";
import { bundleService } from "./deployments/bundle.ts";
import { singleDeployment } from "./deployments/directory.ts";
import { HostedDeployment } from "./deployments/hosted.ts";
import { watchService } from "./deployments/watch.ts";
import { Readiness } from "./health.ts";
import { createLog } from "./log.ts";
import type { Notifier } from "./queue/notifier.ts";
import { startPruner } from "./queue/pruner.ts";
import type { ServiceManifest } from "./sdk/manifest.ts";
import { createServer } from "./server.ts";
import { PostgresNotifier } from "./storage/postgres/notifier.ts";
import { PostgresStorage } from "./storage/postgres/storage.ts";
import { SqliteStorage } from "./storage/sqlite/storage.ts";
import type { Storage } from "./storage/storage.ts";
import { createIdSource } from "./tasks/id.ts";
import { version } from "./version.ts";

/** What is left of open connections after the drain. */
const CLOSE_GRACE_MS = 2_000;

/** The organization of a service that is served alone. */
const LOCAL_ORGANIZATION = "local";

/** A service that is being served. */
export interface ServedService {
  readonly manifest: ServiceManifest;
  /** The port that was bound: the one configured, or any free one for 0. */
  readonly port: number;
  /** Drains and ends everything; the same promise every time. */
  stop(): Promise<void>;
}

/**
 * Serves one service, as `tessera serve` does. Rejects with one message when
 * the service, the database or the port is not usable; then nothing is left
 * running.
 */
export async function serveService(
  config: ServeConfig,
  { token, workerEnv = {} }: Secrets,
): Promise<ServedService> {
  const log = createLog(config.logLevel);
  const resources = new AsyncDisposableStack();
  try {
    const bundle = await bundleService(config.servicePath);
    const { storage, notifier } = openStorage(config.database);
    resources.use(storage);
    await storage.start();
    if (notifier) {
      resources.use(notifier).start();
    }
    if (
      storage.capabilities.durable &&
      resolve(config.database).startsWith(`${dirname(bundle.servicePath)}${sep}`)
    ) {
      const { database } = config;
      log.warn(
        { database },
        "the database lies in the service's folder, which the service may read",
      );
    }
    const readiness = new Readiness();
    const hosted = resources.use(
      new HostedDeployment({
        organization: LOCAL_ORGANIZATION,
        storage,
        notifier,
        log,
        newId: createIdSource(),
        now: Date.now,
        workers: config.workers,
        graceMs: config.graceMs,
        readyTimeoutMs: config.readyTimeoutMs,
        maxResultBytes: config.maxResultBytes,
        maxWaiting: config.maxWaiting,
        workerAccess: { ...config.workerAccess, env: workerEnv },
        onReadiness: () => readiness.set(hosted.ready),
      }),
    );
    // However this process ends, a worker that blocks its event loop would not notice.
    const abandon = (): void => hosted.abandon();
    process.once("exit", abandon);
    resources.defer(() => void process.off("exit", abandon));
    await hosted.start();
    const manifest = await hosted.deploy(bundle);
    resources.use(startPruner({ storage, log, now: Date.now }));
    const shutdown = new AbortController();
    // People who develop want to see calls; whoever collects logs has to ask for them.
    const accessLevel = process.stderr.isTTY ? "info" : "debug";
    const { app, listener } = await createServer({
      directory: singleDeployment(hosted),
      authenticate: token === undefined ? allowEveryone : requireToken(token),
      authorization: token !== undefined,
      health: readiness,
      log,
      version,
      jsonBodyBytes: config.jsonBodyBytes,
      fileBodyBytes: config.fileBodyBytes,
      bodyBudgetBytes: config.bodyBudgetBytes,
      accessLog: log.isLevelEnabled(accessLevel) ? accessLevel : undefined,
      shutdownSignal: shutdown.signal,
    });
    resources.defer(async () => {
      shutdown.abort();
      await listener.close(CLOSE_GRACE_MS);
      await app.close();
    });
    await listen(listener.server, config);
    if (config.watch) {
      resources.use(watchService(bundle, { hosted, log }));
    }
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      listener.stopAccepting();
      await hosted.drain(config.drainMs);
      await resources.disposeAsync();
    };
    const address = listener.server.address();
    return {
      manifest,
      port: typeof address === "object" && address ? address.port : config.port,
      stop: () => (stopping ??= stop()),
    };
  } catch (err) {
    await resources.disposeAsync();
    throw err;
  }
}

function openStorage(database: string): {
  readonly storage: Storage;
  readonly notifier: Notifier | undefined;
} {
  return isPostgres(database)
    ? { storage: new PostgresStorage(database), notifier: new PostgresNotifier(database) }
    : { storage: new SqliteStorage(database), notifier: undefined };
}

async function listen(server: Server, { port, host }: ServeConfig): Promise<void> {
  try {
    server.listen({ port, host });
    await once(server, "listening");
  } catch (err) {
    const code = (err as NodeJS.ErrnoException).code;
    const reasons: Record<string, string> = {
      EADDRINUSE: "another program is using it; choose another with --port",
      EACCES: "this user may not use it; choose one from 1024 with --port",
      EADDRNOTAVAIL: "this machine does not have that address; check --host",
      ENOTFOUND: "the host is not known; check --host",
    };
    const reason = reasons[code ?? ""] ?? (err instanceof Error ? err.message : String(err));
    throw new Error(`cannot listen on ${host}:${port}: ${reason}`, { cause: err });
  }
}
