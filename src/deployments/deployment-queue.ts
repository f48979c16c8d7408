/** Wires the queue of one deployment to its dispatcher, scaling, observer and peers. */
import type { Log } from "../log/log.ts";
import type { DeploymentMetrics } from "../metrics/deployment.ts";
import type { DeploymentMetricsOf } from "../metrics/metrics.ts";
import type { Pool } from "../pool/pool.ts";
import type { Attempts } from "../queue/attempts.ts";
import type { Calls } from "../queue/calls/calls.ts";
import { Dispatcher } from "../queue/dispatcher.ts";
import { maintainedQueue } from "../queue/maintenance/maintained-queue.ts";
import type { Maintenance } from "../queue/maintenance/maintenance.ts";
import { UnservedTasks } from "../queue/maintenance/unserved-tasks.ts";
import { Peers } from "../queue/peers.ts";
import { Queue } from "../queue/queue.ts";
import { RemoteHints } from "../queue/remote-hints.ts";
import type { Retention } from "../queue/submission.ts";
import type { Changes } from "../queue/waits/changes.ts";
import type { RecentTasks } from "../queue/waits/recent-tasks.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { ClaimedTask, Storage } from "../storage/storage.ts";
import type { DeploymentTracing } from "../tracing/tracing.ts";
import { Observer } from "./observer.ts";
import type { Rollout } from "./rollout.ts";
import { type Scale, Scaling } from "./scaling.ts";

/** The queue of one deployment with its dispatcher and background work. */
export interface DeploymentQueue extends Disposable {
  readonly queue: Queue;
  readonly dispatcher: Dispatcher;
  /** Undefined where the number of workers is fixed. */
  readonly scaling: Scaling | undefined;
  /** Undefined where a service has no revisions. */
  readonly unserved: UnservedTasks | undefined;
  /** Undefined where nothing is counted. */
  readonly observer: Observer | undefined;
  /** Starts no more tasks. Callers can still read tasks and wait for the running ones. */
  stop(): Promise<void>;
}

interface DeploymentQueueSettings {
  readonly storage: Storage;
  readonly notifier: Notifier | undefined;
  readonly maintenance: Maintenance;
  readonly log: Log;
  readonly newId: () => string;
  readonly now: () => number;
  readonly graceMs: number;
  /** Set for a deployment of the platform, which has revisions. */
  readonly record?: object;
}

interface DeploymentQueueParts {
  readonly deploymentId: string;
  readonly scale: Scale | undefined;
  readonly pool: Pool;
  readonly calls: Calls;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  /** The number of workers where it is fixed. */
  readonly workers: number;
  readonly rollout: Rollout;
  readonly retention: () => Retention;
  readonly metrics: DeploymentMetrics | undefined;
  readonly metricsOf: DeploymentMetricsOf | undefined;
  readonly tracing: DeploymentTracing | undefined;
  /** The storage answered a claim, or failed to. */
  onStorage(answers: boolean): void;
  /** The storage answered the node's maintenance, or failed to. */
  onMaintenance(answers: boolean): void;
}

/** Opens the queue. Tasks are claimed once its dispatcher was started. */
export function openDeploymentQueue(
  settings: DeploymentQueueSettings,
  parts: DeploymentQueueParts,
): DeploymentQueue {
  const { storage, notifier, maintenance, log, newId, now, graceMs, record } = settings;
  const { rollout, attempts, pool, scale, workers, metrics } = parts;
  const all = {
    ...parts,
    storage,
    notifier,
    maintenance,
    log,
    newId,
    now,
    graceMs,
    leases: maintenance.leases,
    runTimes: attempts.runTimes,
    endpoints: () => rollout.revision?.manifest.endpoints ?? [],
    hasWorkers: () => pool.size > 0 || pool.ready,
    lacks: (endpoint: string) => rollout.lacks(endpoint),
    refusal: (claimed: ClaimedTask) => rollout.refusal(claimed),
    slots: (endpoint: string) =>
      Math.max(pool.size, scale?.max ?? workers) *
      (rollout.revision?.find(endpoint)?.manifest.concurrency ?? 0),
    awaited: (name: string) =>
      pool.serves({ name }) ? undefined : pool.awaits?.endpoints.get(name),
  };
  const { expirer } = maintenance;
  const scaling = scale && new Scaling(all, scale);
  const unserved = record && new UnservedTasks(all);
  const desired = () => scaling?.desired ?? pool.size;
  const observer = metrics && new Observer({ ...all, metrics, desired });
  const onFull = scaling && (() => scaling.tasksWait());
  const dispatcher = new Dispatcher({
    ...all,
    ...(onFull && { onFull }),
    onBatch: (...formed) => metrics?.batchFormed(...formed),
  });
  const remoteHints = new RemoteHints({ dispatcher, pool, shared: notifier !== undefined });
  const connected = { ...all, dispatcher, remoteHints, unserved };
  const peers = notifier && new Peers({ ...connected, notifier });
  const unregister = maintenance.register(parts.deploymentId, maintainedQueue(connected));
  return {
    queue: new Queue({ ...connected, expirer, peers }),
    dispatcher,
    scaling,
    unserved,
    observer,
    stop: async () => {
      await observer?.[Symbol.asyncDispose]();
      await scaling?.[Symbol.asyncDispose]();
      await unserved?.[Symbol.asyncDispose]();
      remoteHints[Symbol.dispose]();
      await dispatcher[Symbol.asyncDispose]();
      peers?.[Symbol.dispose]();
    },
    [Symbol.dispose]: unregister,
  };
}
