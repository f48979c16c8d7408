/** The part of a node that hosts deployments: put together, and started in order. */
import { availableParallelism, hostname } from "node:os";
import { join } from "node:path";
import type { ChangeFeed } from "../auth/change-feed.ts";
import type { KeyRing } from "../auth/keys.ts";
import type { StartConfig } from "../config/start.ts";
import { CacheFolders } from "../deployments/cache-folders.ts";
import { isOfThisNode, sentenceOf } from "../deployments/queued-reason.ts";
import { Evaluator } from "../hosting/alerts/evaluator.ts";
import { ArtifactCache } from "../hosting/artifact-cache.ts";
import { Budgets } from "../hosting/budgets.ts";
import { Hosting } from "../hosting/hosting.ts";
import { startHousekeeping } from "../hosting/housekeeping.ts";
import { LastServed } from "../hosting/last-served.ts";
import { Manifests } from "../hosting/manifests.ts";
import { NodeMembership } from "../hosting/membership.ts";
import { startImporter } from "../hosting/models/importer.ts";
import type { ModelSource } from "../hosting/models/source.ts";
import { ModelStore } from "../hosting/models/store.ts";
import { Routing } from "../hosting/routing.ts";
import { Deliverer } from "../hosting/webhooks/deliverer.ts";
import { KeptHistory } from "../metrics/history/kept.ts";
import type { Gpus } from "../pool/gpus/gpus.ts";
import { GpuLedger, SHARES_UNTOLD } from "../pool/gpus/ledger.ts";
import { launchersFor } from "../pool/launchers.ts";
import { NodeBudget } from "../pool/room/budget.ts";
import { StartGate } from "../pool/room/start-gate.ts";
import type { Sandbox } from "../pool/sandbox/sandbox.ts";
import { HeldPieces } from "../queue/calls/piece-queue.ts";
import { CallUsage } from "../queue/calls/usage.ts";
import { localUrl } from "../server/bind.ts";
import { alertMail } from "../server/mail/letter.ts";
import type { Mailer } from "../server/mail/mailer.ts";
import type { DeploymentRecord } from "../storage/accounts/organizations.ts";
import type { BlobStore } from "../storage/blobs.ts";
import { tellOfMissingBlobs } from "./incomplete-data.ts";
import { type Node, onExit, openFiles, openMaintenance, startCleaners } from "./node.ts";
import { openNodeFacts, readDisk } from "./node-facts.ts";
import type { PythonHosting } from "./python.ts";

interface PlatformHostingOptions {
  readonly config: StartConfig;
  readonly database: string;
  readonly node: Node;
  readonly keys: KeyRing;
  readonly changes: ChangeFeed;
  readonly port: number;
  /** Where people reach the platform. */
  readonly platformUrl: string;
  readonly sandbox: Sandbox;
  readonly python: PythonHosting | undefined;
  readonly gpus: Gpus;
  readonly sources: readonly ModelSource[];
  /** Undefined where no mail is sent. */
  readonly mailer: Mailer | undefined;
  /** The database answers, or does not. */
  onDatabase(answers: boolean): void;
  /** This node leaves its calls to others, because its machine is drained; or no longer does. */
  onMachineDrained(leaves: boolean): void;
  /** See `tellOfMissingBlobs`. */
  onBlobsLacking(lacking: boolean): void;
}

export interface PlatformHosting extends AsyncDisposable {
  readonly hosting: Hosting;
  readonly blobs: BlobStore;
  /** No other node lives. */
  readonly isAlone: () => boolean;
}

/** Starts to host; what is deployed is known when it returns. Rejects with one message. */
export async function startHosting(options: PlatformHostingOptions): Promise<PlatformHosting> {
  const { config, database, node, keys, changes, port, sandbox, python, gpus, mailer } = options;
  const { storage, notifier, metrics, tracing, log, now, newId } = node;
  const { capabilities, accounts, hosting: records } = storage;
  await using resources = new AsyncDisposableStack();
  const { blobs, keepers } = await openFiles(node, { blobs: config.blobs, database }, resources);
  const looking = new AbortController();
  resources.defer(() => looking.abort());
  const { signal } = looking;
  await tellOfMissingBlobs({ storage, blobs, log, onLacking: options.onBlobsLacking, signal });
  const artifacts = resources.use(
    new ArtifactCache({
      folder: join(config.dataFolder, "artifacts"),
      hosting: records,
      blobs,
      log,
    }),
  );
  await artifacts.start();
  const models = resources.use(
    new ModelStore({
      folder: join(config.dataFolder, "models"),
      maxBytes: config.maxModelsBytes,
      hosting: records,
      blobs,
      log,
    }),
  );
  await models.start();
  metrics.budgetLimited(config.budget.node);
  const ledger = new GpuLedger(gpus, {
    onLeftOut: (gpu, reason) =>
      log.error({ gpu: gpu.index, uuid: gpu.uuid, reason }, "a GPU is left out for half an hour"),
    onUntold: () => log.warn({}, SHARES_UNTOLD),
  });
  const budget = resources.use(
    new NodeBudget(config.budget, {
      gpus: ledger,
      gpuStayMs: config.gpuStayMs,
      onChange: (use) => metrics.budgetUsed(use),
    }),
  );
  const nodes = resources.use(
    new NodeMembership({
      hosting: records,
      shared: capabilities.shared,
      url: localUrl({ port, host: reachable(config.host) }),
      facts: await openNodeFacts({
        platformUrl: options.platformUrl,
        sandbox: sandbox.level,
        labels: config.labels,
        limit: config.budget.node,
        use: () => budget.use,
        isDraining: (): boolean => hosting.isDraining,
        disk: () => readDisk(config.dataFolder),
      }),
      now,
      log,
      onChange: () => hosting.rescale(),
      onDrained: (isDrained, others) => {
        options.onMachineDrained(isDrained && others > 0);
        hosting.setMachineDrained(isDrained, others);
      },
      onRevived: () => hosting.reportAll(),
      onBeat: options.onDatabase,
    }),
  );
  const routing = new Routing({ accounts, changes, appsDomain: config.appsDomain });
  resources.use(routing);
  const { graceMs, readyTimeoutMs, maxResultBytes, maxFileBytes, maxWaiting } = config;
  const maintenance = openMaintenance(node, resources);
  const callUsage = resources.use(new CallUsage({ storage: records, recorder: newId(), now, log }));
  const budgets = resources.use(new Budgets({ hosting: records, changes, now, log }));
  await budgets.look();
  const hosting = resources.use(
    new Hosting({
      routing,
      changes,
      shared: capabilities.shared,
      hosting: records,
      keys,
      metrics,
      nodes,
      artifacts,
      models,
      environments: python?.environments,
      layers: python?.layers,
      images: python?.images,
      labels: config.labels,
      gpus,
      budgets,
      caches: resources.use(
        new CacheFolders({
          folder: join(config.dataFolder, "caches"),
          maxBytes: config.maxCacheBytes,
          log,
        }),
      ),
      log,
      served: new LastServed(join(artifacts.folder, "served")),
      manifests: new Manifests({ hosting: records, log }),
      common: {
        storage,
        notifier,
        maintenance,
        newId,
        now,
        tracing,
        budget,
        starts: new StartGate(Math.max(2, availableParallelism())),
        graceMs,
        readyTimeoutMs,
        maxResultBytes,
        maxFileBytes,
        maxWaiting,
        maxRetentionMs: config.ceilings.retentionMs,
        files: keepers,
        readers: node.readers,
        heldPieces: new HeldPieces(),
        callUsage,
        allowNativeCode: config.allowsNativeCode,
        launchOf: launchersFor(sandbox),
        sandbox: sandbox.level,
        ...(sandbox.level === "kernel" && { allowedEgress: config.allowedEgress }),
      },
    }),
  );
  onExit(() => hosting.abandon(), resources);
  gpus.onChange?.(() => hosting.gpusChanged());
  await nodes.start();
  await maintenance.start();
  await hosting.start();
  startCleaners(node, blobs, resources);
  resources.use(
    startHousekeeping({
      hosting: records,
      blobs,
      artifacts,
      environments: python?.environments,
      images: python?.images,
      now,
      log,
    }),
  );
  resources.use(
    startImporter({
      ...{ hosting: records, blobs, sources: options.sources, keys, now, newId, log },
      maxBytes: config.ceilings.storageBytes,
    }),
  );
  resources.use(
    new Deliverer({
      ...{ hosting: records, storage, changes, keys, now, newId, log },
      platformUrl: options.platformUrl,
      allowedEgress: config.allowedEgress,
      mail: mailer && ((address, message) => mailer.send(alertMail(address, message))),
    }),
  );
  resources.use(
    new Evaluator({
      ...{ accounts, hosting: records, storage, changes, now, newId, log },
      history: new KeptHistory(storage.metrics),
      whyQueued: (deploymentId, { endpoint, dueAtMs: runAtMs }) => {
        const reason = hosting.whyQueued(deploymentId, { endpoint, runAtMs, returned: [] });
        // Of its own workers a node knows; those of others may tell another reason.
        return reason === undefined || (nodes.living > 1 && isOfThisNode(reason))
          ? undefined
          : sentenceOf(reason, true);
      },
      platformUrl: options.platformUrl,
    }),
  );
  const started = resources.move();
  return {
    hosting,
    blobs,
    isAlone: () => nodes.living === 1,
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
