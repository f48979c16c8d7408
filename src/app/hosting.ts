/** The part of a node that hosts deployments: put together, and started in order. */
import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import type { ChangeFeed } from "../auth/changes.ts";
import type { KeyRing } from "../auth/keys.ts";
import type { StartConfig } from "../config/config.ts";
import { ScratchFolders } from "../deployments/scratch.ts";
import { FileKeeper } from "../files/keeper.ts";
import { startSweeper } from "../files/sweeper.ts";
import { ArtifactCache } from "../hosting/artifact-cache.ts";
import { Hosting } from "../hosting/hosting.ts";
import { startHousekeeping } from "../hosting/housekeeping.ts";
import { LastServed } from "../hosting/last-served.ts";
import { NodeMembership } from "../hosting/membership.ts";
import { Routing } from "../hosting/routing.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { StartGate } from "../pool/start-gate.ts";
import { Maintenance } from "../queue/maintenance.ts";
import { startPruner } from "../queue/pruner.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { Tracing } from "../tracing/tracing.ts";

export interface PlatformHostingOptions {
  readonly config: StartConfig;
  readonly storage: Storage;
  readonly notifier: Notifier | undefined;
  /** Opens the store of large files, which nodes share. */
  readonly openBlobs: () => Promise<BlobStore>;
  /** A store in a folder of this process. */
  readonly openLocalBlobs: (folder: string) => BlobStore;
  readonly keys: KeyRing;
  readonly metrics: Metrics;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  readonly changes: ChangeFeed;
  readonly log: FastifyBaseLogger;
  readonly now: () => number;
  readonly newId: () => string;
  readonly port: number;
  /** The database answers, or does not. */
  onDatabase(answers: boolean): void;
}

export interface PlatformHosting extends AsyncDisposable {
  readonly hosting: Hosting;
  readonly blobs: BlobStore;
  /** No other node lives. */
  readonly isAlone: () => boolean;
}

/** Starts to host; what is deployed is known when it returns. Rejects with one message. */
export async function startHosting(options: PlatformHostingOptions): Promise<PlatformHosting> {
  const { config, storage, notifier, keys, metrics, tracing, changes, log } = options;
  const { now, newId, port } = options;
  const { capabilities, accounts, hosting: records } = storage;
  await using resources = new AsyncDisposableStack();
  const scratch = new ScratchFolders(now());
  resources.defer(() => scratch.removeAll());
  const local = resources.use(options.openLocalBlobs(scratch.create()));
  await local.start();
  const blobs = resources.use(await options.openBlobs());
  await blobs.start();
  const artifacts = resources.use(
    new ArtifactCache({
      folder: join(config.dataFolder, "artifacts"),
      hosting: records,
      blobs,
      log,
    }),
  );
  await artifacts.start();
  const nodes = resources.use(
    new NodeMembership({
      hosting: records,
      shared: capabilities.shared,
      url: `http://${reachable(config.host)}:${port}`,
      now,
      log,
      onChange: () => hosting.rescale(),
      onRevived: () => hosting.reportAll(),
      onBeat: options.onDatabase,
    }),
  );
  const routing = new Routing({ accounts, changes, appsDomain: config.appsDomain });
  resources.use(routing);
  const { graceMs, readyTimeoutMs, maxResultBytes, maxFileBytes, maxWaiting } = config;
  const maintenance = resources.use(new Maintenance({ storage, notifier, log, now }));
  const hosting = resources.use(
    new Hosting({
      routing,
      changes,
      hosting: records,
      keys,
      metrics,
      nodes,
      artifacts,
      log,
      served: new LastServed(join(artifacts.folder, "served")),
      common: {
        storage,
        notifier,
        maintenance,
        newId,
        now,
        tracing,
        starts: new StartGate(Math.max(2, availableParallelism())),
        graceMs,
        readyTimeoutMs,
        maxResultBytes,
        maxFileBytes,
        maxWaiting,
        files: {
          task: new FileKeeper({ blobs, registry: storage, newId, now }),
          api: new FileKeeper({ blobs: local, newId, now }),
        },
        allowNativeCode: config.allowsNativeCode,
      },
    }),
  );
  // However this process ends, a worker that blocks its event loop would not notice.
  const abandon = (): void => {
    hosting.abandon();
    scratch.removeAll();
  };
  process.once("exit", abandon);
  resources.defer(() => void process.off("exit", abandon));
  await nodes.start();
  await maintenance.start();
  await hosting.start();
  resources.use(startPruner({ storage, log, now }));
  resources.use(startSweeper({ storage, blobs, log, now }));
  resources.use(startHousekeeping({ hosting: records, blobs, artifacts, now, log }));
  const started = resources.move();
  return {
    hosting,
    blobs,
    isAlone: () => nodes.count === 1,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Where deployments are called: below the apps domain, as the platform's own address is reached. */
export function appUrls(
  publicUrl: string,
  appsDomain: string,
): (deployment: Pick<DeploymentRecord, "name" | "organization">) => string {
  const { protocol, port } = new URL(publicUrl);
  const end = port === "" ? "" : `:${port}`;
  return ({ name, organization }) => `${protocol}//${name}.${organization}.${appsDomain}${end}`;
}

function reachable(host: string): string {
  return ["0.0.0.0", "::"].includes(host) ? hostname() : host;
}
