/**
 * The composition root: the only file that names concrete adapters. It puts
 * storage, workers and server together, starts them in order, and ends them
 * in the opposite order.
 */
import { existsSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { bundleService } from "../artifacts/bundle.ts";
import { allowEveryone, requireToken } from "../auth/shared-token.ts";
import {
  type DataConfig,
  type DataSecrets,
  isPostgres,
  type Secrets,
  type ServeConfig,
  type StartConfig,
  type StartSecrets,
  type TracingConfig,
  type TracingSecrets,
} from "../config/config.ts";
import { playground } from "../console/playground.ts";
import { Deployment } from "../deployments/deployment.ts";
import { singleDeployment } from "../deployments/directory.ts";
import { ScratchFolders } from "../deployments/scratch.ts";
import { FileKeeper } from "../files/keeper.ts";
import { startSweeper } from "../files/sweeper.ts";
import type { Log } from "../log/log.ts";
import { createLog } from "../log/pino.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import { Maintenance } from "../queue/maintenance.ts";
import { startPruner } from "../queue/pruner.ts";
import { listen } from "../server/bind.ts";
import { deploymentMetrics, serveDeployments } from "../server/deployments.ts";
import { Readiness } from "../server/readiness.ts";
import { register } from "../server/rpc/engine/invoker.ts";
import { introspection } from "../server/rpc/principal.ts";
import { createServer } from "../server/server.ts";
import { FolderBlobStore } from "../storage/blobs/folder.ts";
import { PostgresBlobStore } from "../storage/blobs/postgres.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { Notifier } from "../storage/notifier.ts";
import { addressOf } from "../storage/postgres/connect.ts";
import { PostgresNotifier } from "../storage/postgres/notifier.ts";
import { PostgresStorage } from "../storage/postgres/storage.ts";
import { SqliteStorage } from "../storage/sqlite/storage.ts";
import type { Storage } from "../storage/storage.ts";
import { createIdSource } from "../tasks/id.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { version } from "../version.ts";
import { Administration } from "./administration.ts";
import { keysPath, openDataFolder } from "./folder.ts";
import { measuredStorage, nodeMetrics } from "./metrics.ts";
import { type OpenedAdapters, openKeys, runPlatform, type StartedPlatform } from "./start.ts";
import { watchService } from "./watch.ts";
import { whenLong } from "./when-long.ts";

/** What is left of open connections after the drain. */
const CLOSE_GRACE_MS = 2_000;

/** The organization of a service that is served alone. */
const LOCAL_ORGANIZATION = "local";

export type { AdminCredentials, Administration, PasswordReset } from "./administration.ts";
export type { StartedPlatform } from "./start.ts";

/** A service that is being served. */
export interface StartedService {
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
  { token, workerEnv = {}, tracing: receiver }: Secrets,
): Promise<StartedService> {
  const log = createLog(config.logLevel);
  const resources = new AsyncDisposableStack();
  try {
    const tracing = await openTracing(config.tracing, receiver, log);
    if (tracing) {
      resources.use(tracing);
    }
    const bundle = await bundleService(config.servicePath);
    const { storage: opened, notifier } = openStorage(config.database);
    resources.use(opened);
    await opened.start();
    const metrics = nodeMetrics(config.port, Date.now);
    const storage = measuredStorage(opened, metrics);
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
    const newId = createIdSource();
    const scratch = new ScratchFolders(Date.now());
    const removeScratch = (): void => scratch.removeAll();
    process.once("exit", removeScratch);
    resources.defer(() => {
      process.off("exit", removeScratch);
      removeScratch();
    });
    const local = new FolderBlobStore(scratch.create());
    const blobs = resources.use(await openBlobs(config, local));
    await blobs.start();
    const keeping = {
      newId,
      now: Date.now,
      onFailed: (err: unknown) => log.error({ err }, "the store of large files failed"),
    };
    const files = {
      task: new FileKeeper({ ...keeping, blobs, registry: storage }),
      api: new FileKeeper({ ...keeping, blobs: local }),
    };
    const readiness = new Readiness();
    const maintenance = resources.use(new Maintenance({ storage, notifier, log, now: Date.now }));
    const hosted = resources.use(
      new Deployment({
        organization: LOCAL_ORGANIZATION,
        counted: { metrics, organizationId: LOCAL_ORGANIZATION },
        storage,
        notifier,
        maintenance,
        log,
        tracing,
        newId,
        now: Date.now,
        workers: config.workers,
        graceMs: config.graceMs,
        readyTimeoutMs: config.readyTimeoutMs,
        maxResultBytes: config.maxResultBytes,
        maxFileBytes: config.maxFileBytes,
        files,
        maxWaiting: config.maxWaiting,
        workerAccess: { ...config.workerAccess, env: workerEnv },
        onReadiness: () => readiness.set(hosted.ready),
      }),
    );
    // However this process ends, a worker that blocks its event loop would not notice.
    const abandon = (): void => hosted.abandon();
    process.once("exit", abandon);
    resources.defer(() => void process.off("exit", abandon));
    await maintenance.start();
    const watching = config.watch
      ? resources.use(watchService(bundle, { deployment: hosted, log }))
      : undefined;
    const manifest = await (watching?.loaded ??
      whenLong(hosted.deploy(bundle), (seconds) =>
        log.warn({ seconds }, "the service takes long to load; it is served when it has"),
      ));
    resources.use(startPruner({ storage, log, now: Date.now }));
    resources.use(startSweeper({ storage, blobs, log, now: Date.now }));
    const shutdown = new AbortController();
    // People who develop want to see calls; whoever collects logs has to ask for them.
    const accessLevel = process.stderr.isTTY ? "info" : "debug";
    const serving = serveDeployments({ ...config, version });
    const { app, listener } = await createServer({
      services: [...serving.services, register(AuthService, introspection)],
      plugins: [...serving.plugins, deploymentMetrics(metrics), playground],
      directory: singleDeployment(hosted, { authorization: token !== undefined }),
      authenticate: token === undefined ? allowEveryone : requireToken(token),
      standalone: true,
      // Without a token, any page that the developer's browser shows could call.
      sameSiteOnly: token === undefined,
      allowedOrigins: config.allowedOrigins,
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
    const port = await listen(listener.server, config);
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      listener.stopAccepting();
      await watching?.[Symbol.asyncDispose]();
      await hosted.drain(config.drainMs);
      await resources.disposeAsync();
    };
    return {
      manifest,
      port,
      stop: () => (stopping ??= stop()),
    };
  } catch (err) {
    await resources.disposeAsync();
    throw err;
  }
}

/**
 * Runs a node of the platform, as `tessera start` does. Rejects with one
 * message when something that it needs is not usable; then nothing is left
 * running.
 */
export function startPlatform(
  config: StartConfig,
  secrets: StartSecrets,
): Promise<StartedPlatform> {
  return runPlatform(
    config,
    secrets,
    (database): OpenedAdapters => ({
      ...openStorage(database),
      openBlobs: () => openBlobs({ blobs: config.blobs, database }),
      openLocalBlobs: (folder) => new FolderBlobStore(folder),
      openTracing: (log) => openTracing(config.tracing, secrets.tracing, log),
      shown: isPostgres(database) ? addressOf(database) : database,
    }),
  );
}

/**
 * Opens the data of a platform for the operator, also while nodes run on it.
 * With `create`, it may be that of a platform that has not started yet.
 */
export async function openAdministration(
  config: DataConfig,
  secrets: DataSecrets,
  { create }: { readonly create: boolean },
): Promise<Administration> {
  const { database, keys } = secrets;
  const isFile = !isPostgres(database);
  if (isFile && !create && !existsSync(database)) {
    throw new Error(
      `there is no platform at ${database}: run this where tessera start runs, or name its data with --data or DATABASE_URL`,
    );
  }
  if (create) {
    openDataFolder(config.dataFolder);
  }
  const storage = isFile
    ? new SqliteStorage(database, { ownsQueue: false })
    : new PostgresStorage(database, { connections: 2 });
  try {
    await storage.start();
    const { accounts, hosting } = storage;
    if (create) {
      await openKeys(config, secrets, accounts);
    }
    return new Administration({
      accounts,
      hosting,
      keys: keys === undefined ? { path: keysPath(config.dataFolder) } : { env: keys },
      shared: storage.capabilities.shared,
      now: Date.now,
      newId: createIdSource(),
      resources: storage,
    });
  } catch (err) {
    await storage[Symbol.asyncDispose]();
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

/** Undefined where nothing is traced. */
async function openTracing(
  config: TracingConfig | undefined,
  receiver: TracingSecrets | undefined,
  log: Log,
): Promise<Tracing | undefined> {
  if (config === undefined || receiver === undefined) {
    return undefined;
  }
  // It takes a moment to load, which all others should not wait for.
  const { OtlpTracing } = await import("../tracing/otlp/otlp.ts");
  return new OtlpTracing({ ...config, ...receiver, version, log });
}

/** Where large files are kept; `local` is a folder of this process. */
async function openBlobs(
  { blobs, database }: Pick<ServeConfig, "blobs" | "database">,
  local?: FolderBlobStore,
): Promise<BlobStore> {
  switch (blobs.kind) {
    case "temporary":
      if (local === undefined) {
        throw new Error("large files cannot be kept in memory");
      }
      return local;
    case "folder":
      return new FolderBlobStore(blobs.folder);
    case "postgres":
      return new PostgresBlobStore(database);
    case "s3": {
      // The client takes a moment to load, which all others should not wait for.
      const { S3BlobStore } = await import("../storage/blobs/s3.ts");
      return new S3BlobStore(blobs);
    }
  }
}
