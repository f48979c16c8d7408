/** What works on the queue of one deployment, and how many workers it asks for. */

import type { Log } from "../log/log.ts";
import type { DeploymentMetrics } from "../metrics/deployment.ts";
import type { MetricsOf } from "../metrics/metrics.ts";
import type { Pool } from "../pool/pool.ts";
import type { Attempts } from "../queue/attempts.ts";
import type { Calls } from "../queue/calls.ts";
import type { Changes } from "../queue/changes.ts";
import type { Rounds } from "../queue/maintenance.ts";
import { type OpenQueue, openQueue } from "../queue/open.ts";
import type { RecentTasks } from "../queue/recent.ts";
import { AbandonedTasks } from "../queue/unserved-tasks.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { ClaimedTask, Storage } from "../storage/storage.ts";
import type { DeploymentTracing } from "../tracing/tracing.ts";
import { Observer } from "./observer.ts";
import type { Rollout } from "./rollout.ts";
import { type Scale, Scaling } from "./scaling.ts";

export interface Work extends OpenQueue {
  /** undefined where the number of workers stays. */
  readonly scaling: Scaling | undefined;
  /** undefined where a service has no revisions. */
  readonly abandoned: AbandonedTasks | undefined;
  /** undefined where nothing is counted. */
  readonly observer: Observer | undefined;
}

export interface WorkSettings {
  readonly storage: Storage;
  readonly notifier: Notifier | undefined;
  readonly rounds: Rounds;
  readonly log: Log;
  readonly newId: () => string;
  readonly now: () => number;
  readonly graceMs: number;
  /** It is a deployment of the platform, which has revisions. */
  readonly record?: object;
}

export interface WorkParts {
  readonly deploymentId: string;
  readonly scale: Scale | undefined;
  readonly pool: Pool;
  readonly calls: Calls;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  /** Workers, where their number stays. */
  readonly workers: number;
  readonly rollout: Rollout;
  readonly metrics: DeploymentMetrics | undefined;
  readonly metricsOf: MetricsOf | undefined;
  readonly tracing: DeploymentTracing | undefined;
  /** A claim was answered, or was not. */
  onStorage(answers: boolean): void;
  /** A round of the node was answered, or was not. */
  onRound(answers: boolean): void;
}

/** Opens the queue; tasks are claimed from the first `start` of its dispatcher on. */
export function openWork(settings: WorkSettings, parts: WorkParts): Work {
  const { storage, notifier, rounds, log, newId, now, graceMs, record } = settings;
  const { rollout, attempts, pool, scale, workers, metrics } = parts;
  const all = {
    ...parts,
    ...{ storage, notifier, rounds, log, newId, now, graceMs },
    leases: rounds.leases,
    runTimes: attempts.runTimes,
    endpoints: () => rollout.revision?.manifest.endpoints ?? [],
    lacks: (endpoint: string) => rollout.lacks(endpoint),
    refusal: (claimed: ClaimedTask) => rollout.refusal(claimed),
    slots: (endpoint: string) =>
      Math.max(pool.size, scale?.max ?? workers) *
      (rollout.revision?.find(endpoint)?.manifest.concurrency ?? 0),
  };
  const scaling = scale && new Scaling(all, scale);
  const abandoned = record && new AbandonedTasks(all);
  const observer = metrics && new Observer({ ...all, metrics });
  const onFull = scaling && (() => scaling.tasksWait());
  const queue = openQueue({ ...all, abandoned, ...(onFull && { onFull }) });
  return {
    ...queue,
    scaling,
    abandoned,
    observer,
    stop: async () => {
      await observer?.[Symbol.asyncDispose]();
      await scaling?.[Symbol.asyncDispose]();
      await abandoned?.[Symbol.asyncDispose]();
      await queue.stop();
    },
  };
}
