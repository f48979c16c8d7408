/**
 * What every node has, whichever command runs it: storage with its notifier,
 * metrics, traces, large files, the queue's maintenance, and the one port.
 * Each part is started here and ends with the `resources` that it is given.
 */
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { BlobsConfig } from "../config/blobs.ts";
import type { ConnectionsConfig } from "../config/connections.ts";
import type { TracingConfig, TracingSecrets } from "../config/tracing.ts";
import type { CellAddress } from "../config/values.ts";
import { ScratchFolders } from "../deployments/scratch.ts";
import { type Problem, shuttingDown } from "../errors.ts";
import type { Log } from "../log/log.ts";
import { createLog, type ProcessLog } from "../log/pino.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { Maintenance, startPruner } from "../queue/maintenance/maintenance.ts";
import type { BoundPort } from "../server/bind.ts";
import { ConnectionLimit } from "../server/connection-limit.ts";
import type { Listener } from "../server/listener.ts";
import { createServer, type ServerOptions } from "../server/server.ts";
import { ReaderThreads } from "../service/input/threads.ts";
import type { BlobStore } from "../storage/blobs.ts";
import { FileKeeper } from "../storage/files/keeper.ts";
import { startSweeper } from "../storage/files/sweeper.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import { DatabaseAway } from "../storage/unavailable.ts";
import { createIdSource, type IdSource } from "../tasks/id.ts";
import { LogThrottle } from "../time/log-throttle.ts";
import type { Tracing } from "../tracing/tracing.ts";
import {
  type DatabaseAddress,
  openBlobs,
  openLocalBlobs,
  openStorage,
  openTracing,
  shownDatabase,
} from "./adapters.ts";
import { measuredStorage, nodeMetrics, reportCells, reportNotifier } from "./metrics.ts";

/** How long open connections may take to end after the drain. */
export const CLOSE_GRACE_MS = 2_000;

interface NodeConfig extends DatabaseAddress {
  /** Further databases, each with a part of the tasks. */
  readonly cells: readonly CellAddress[];
  /** How long the node waits for a database that does not answer when it starts. */
  readonly databaseWaitMs: number;
  /** Tells the node's metrics from those of others on the machine; 0 when it is not known yet. */
  readonly port: number;
  readonly logLevel: string;
  /** What to do about a schema of an earlier version. */
  readonly migrate: "auto" | "check";
  readonly tracing: TracingConfig | undefined;
  readonly tracingSecrets: TracingSecrets | undefined;
}

export interface Node {
  readonly log: ProcessLog;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** Measured: how long operations take is counted. */
  readonly storage: Storage;
  /** The same, not measured. */
  readonly unmeasured: Storage;
  /** Emits the error of each operation of the storage that the database did not answer. */
  readonly refusals: EventEmitter<{ unavailable: [Problem] }>;
  /** Undefined where one node alone uses the database. */
  readonly notifier: Notifier | undefined;
  readonly metrics: Metrics;
  /** Where large bodies are read. */
  readonly readers: ReaderThreads;
  readonly now: () => number;
  readonly newId: IdSource;
}

/**
 * Opens the storage and starts it, as soon as the database answers. Rejects with one message when
 * it cannot be used.
 */
export async function openNode(config: NodeConfig, resources: AsyncDisposableStack): Promise<Node> {
  const { port, logLevel, tracingSecrets } = config;
  const log = createLog(logLevel);
  const tracing = await openTracing(config.tracing, tracingSecrets, log);
  if (tracing) {
    resources.use(tracing);
  }
  const now = Date.now;
  const metrics = nodeMetrics(port, now);
  const { storage: unmeasured, notifier } = openStorage(config, {
    onWarning: (message) => log.warn({ database: shownDatabase(config.database) }, message),
    onNotifierState: reportNotifier(log, metrics),
    onCell: reportCells(log, metrics),
    migration: config.migrate,
    onMigrated: ({ from, to, copy }) =>
      from === 0
        ? log.debug({ to }, "the schema was made")
        : log.info({ from, to, copy }, "the schema was migrated"),
  });
  resources.use(unmeasured);
  await startWhenThere(unmeasured, { log, waitMs: config.databaseWaitMs });
  if (notifier) {
    resources.use(notifier).start();
  }
  const refusals = new EventEmitter<{ unavailable: [Problem] }>();
  const storage = measuredStorage(unmeasured, metrics, (found) =>
    refusals.emit("unavailable", found),
  );
  const onFailed = (err: unknown): void => log.error({ err }, "a large body could not be read");
  const readers = resources.use(new ReaderThreads({ onFailed }));
  const newId = createIdSource();
  const used = { storage, unmeasured, refusals, notifier };
  return { log, tracing, ...used, metrics, readers, now, newId };
}

/** Where a node keeps files, and the folders of its workers. */
export interface NodeFiles {
  /** Removed when the process ends. */
  readonly scratch: ScratchFolders;
  /** The store that nodes share. */
  readonly blobs: BlobStore;
  readonly keepers: { readonly task: FileKeeper; readonly api: FileKeeper };
}

/** Opens the stores of large files. Rejects with one message when one cannot be used. */
export async function openFiles(
  { log, storage, now, newId }: Node,
  config: { readonly blobs: BlobsConfig; readonly database: string },
  resources: AsyncDisposableStack,
): Promise<NodeFiles> {
  const scratch = new ScratchFolders(now());
  const removeScratch = (): void => scratch.removeAll();
  resources.defer(removeScratch);
  onExit(removeScratch, resources);
  const local = openLocalBlobs(scratch.create());
  const blobs = await openBlobs(config, local);
  for (const store of new Set([local, blobs])) {
    await resources.use(store).start();
  }
  const onFailed = (err: unknown): void => log.error({ err }, "the store of large files failed");
  return {
    scratch,
    blobs,
    keepers: {
      task: new FileKeeper({ blobs, registry: storage, newId, now, onFailed }),
      api: new FileKeeper({ blobs: local, newId, now, onFailed }),
    },
  };
}

/** The queue's maintenance; `start` it once the deployments are there. */
export function openMaintenance(
  { storage, notifier, log, now }: Node,
  resources: AsyncDisposableStack,
): Maintenance {
  return resources.use(new Maintenance({ storage, notifier, log, now }));
}

/** Begins to delete results and large files whose time is over. */
export function startCleaners(
  { storage, log, now }: Node,
  blobs: BlobStore,
  resources: AsyncDisposableStack,
): void {
  resources.use(startPruner({ storage, log, now }));
  resources.use(startSweeper({ storage, blobs, log, now }));
}

/**
 * Calls `clean` however this process ends, the last one given first, as
 * resources end: workers that block their event loop would not notice.
 */
export function onExit(clean: () => void, resources: AsyncDisposableStack): void {
  process.prependOnceListener("exit", clean);
  resources.defer(() => void process.off("exit", clean));
}

type OfTheNode = "log" | "readers" | "accessLog" | "shutdownSignal" | "connectionLimit";

export interface HttpOptions extends Omit<ServerOptions, OfTheNode> {
  readonly connections: ConnectionsConfig;
  /** Whether calls are logged at info instead of debug. */
  readonly logsCalls: boolean;
}

/** Serves on the one port, which is bound already and stays so until after the last worker. */
export async function serveHttp(
  { connections, logsCalls, ...options }: HttpOptions,
  {
    bound,
    log,
    metrics,
    readers,
  }: Pick<Node, "log" | "metrics" | "readers"> & {
    readonly bound: BoundPort;
  },
  resources: AsyncDisposableStack,
): Promise<Listener> {
  // Calls and streams that are left get its reason as their answer.
  const shutdown = new AbortController();
  const accessLevel = logsCalls ? "info" : "debug";
  const { app, listener } = await createServer({
    ...options,
    log,
    readers,
    accessLog: log.isLevelEnabled(accessLevel) ? accessLevel : undefined,
    shutdownSignal: shutdown.signal,
    connectionLimit: limitConnections(connections, { log, metrics, trusts: options.trustProxy }),
  });
  const close = (graceMs: number): Promise<void> => {
    listener.retire();
    shutdown.abort(shuttingDown());
    return listener.close(graceMs);
  };
  resources.defer(async () => {
    await close(CLOSE_GRACE_MS);
    await app.close();
  });
  bound.handTo(listener.server);
  return { ...listener, close };
}

function limitConnections(
  { total, perAddress }: ConnectionsConfig,
  parts: Pick<Node, "log" | "metrics"> & { readonly trusts: ServerOptions["trustProxy"] },
): ConnectionLimit {
  const { log, metrics, trusts } = parts;
  const refused = new LogThrottle((fields, message) => log.warn(fields, message));
  return new ConnectionLimit({
    total,
    perAddress,
    ...(typeof trusts === "function" && { isProxy: (address) => trusts(address, 0) }),
    onRefused(bound, address) {
      metrics.connectionRefused(bound);
      const message =
        bound === "total"
          ? "connections were refused because too many are open; tessera start --max-connections allows more"
          : "connections were refused because their address has too many open: name it with --trusted-proxies if it is a proxy, or allow more with --max-connections-per-address";
      refused.say({ bound, address, total, perAddress }, message);
    },
  });
}

// Starts a storage as soon as its database answers: it may be starting or failing over itself.

/** Pause before a database that did not answer is tried again. */
const DATABASE_RETRY_PAUSE_MS = 500;

/** Interval at which the log says what the start waits for. */
const DATABASE_WAIT_LOG_INTERVAL_MS = 5_000;

interface DatabaseWaitOptions {
  readonly log: Log;
  /** How long to wait altogether; 0 tries once. */
  readonly waitMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly monotonicMs?: () => number;
  readonly pause?: (ms: number) => Promise<void>;
}

/** Rejects at once when the database answers and cannot be used, and with the last error when the time is over. */
export async function startWhenThere(
  storage: Pick<Storage, "start">,
  options: DatabaseWaitOptions,
): Promise<void> {
  const { log, waitMs, monotonicMs = () => performance.now(), pause = sleep } = options;
  const beganMs = monotonicMs();
  let saidMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      await storage.start();
      return;
    } catch (err) {
      const nowMs = monotonicMs();
      if (!(err instanceof DatabaseAway) || nowMs - beganMs >= waitMs) {
        throw err;
      }
      if (nowMs - saidMs >= DATABASE_WAIT_LOG_INTERVAL_MS) {
        saidMs = nowMs;
        const seconds = Math.round((beganMs + waitMs - nowMs) / 1_000);
        log.warn({}, `${err.message}; trying again for ${seconds} s`);
      }
      await pause(DATABASE_RETRY_PAUSE_MS);
    }
  }
}
