/**
 * A metrics sampler: records every 5 s the queue length of a deployment, and the
 * resource usage of its workers on this node. All deployments of a node sample
 * their queues at the same moments, so that a storage over a network can answer
 * them together. They sample their workers at different moments, because that is
 * work for this process.
 */
import type { Log } from "../log/log.ts";
import type { DeploymentMetrics } from "../metrics/metrics.ts";
import type { Pool } from "../pool/pool.ts";
import type { Worker } from "../pool/worker.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { OldestWaiting } from "../storage/queues.ts";
import type { Storage } from "../storage/storage.ts";
import { Timer } from "../time/timer.ts";

/** Interval at which a deployment's queue and workers are measured for the metrics. */
const METRICS_OBSERVE_INTERVAL_MS = 5_000;

/** Aligned to the start of this process, which differs between nodes. Timers may be 1 ms early. */
function untilNextMs(): number {
  return (
    Math.ceil(METRICS_OBSERVE_INTERVAL_MS - (performance.now() % METRICS_OBSERVE_INTERVAL_MS)) + 1
  );
}

interface ObserverOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "countTasks" | "oldestWaiting">;
  readonly pool: Pick<Pool, "alive" | "joined" | "measured" | "present" | "readyCount">;
  readonly metrics: DeploymentMetrics;
  readonly desired: () => number;
  readonly endpoints: () => readonly EndpointManifest[];
  readonly log: Log;
  readonly now: () => number;
}

export class Observer implements AsyncDisposable {
  readonly #options: ObserverOptions;
  readonly #workersTimer: Timer;
  #queueTimer: NodeJS.Timeout | undefined;
  #queueLook: Promise<void>;
  #ended = false;
  /** Processor time of the living workers, as last sampled. */
  readonly #cpuMs = new Map<string, number>();
  #goneCpuMs = 0;

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.#lookAtWorkers();
    this.#queueLook = this.#observeQueue();
    this.#workersTimer = new Timer(
      METRICS_OBSERVE_INTERVAL_MS,
      async () => this.#lookAtWorkers(),
      (err) => this.#failed(err, "what the workers take could not be read for the metrics"),
    );
  }

  /** A worker has ended: keeps its processor time in the total. */
  workerEnded(worker: Pick<Worker, "id" | "usage">): void {
    this.#goneCpuMs += worker.usage().cpuMs;
    this.#cpuMs.delete(worker.id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#queueTimer);
    await this.#workersTimer[Symbol.asyncDispose]();
    await this.#queueLook;
  }

  /** Samples the queue now, and again at the next common moment. */
  async #observeQueue(): Promise<void> {
    try {
      await this.#lookAtQueue();
    } catch (err) {
      this.#failed(err, "the length of the queue could not be read for the metrics");
    }
    if (!this.#ended) {
      this.#queueTimer = setTimeout(() => {
        this.#queueLook = this.#observeQueue();
      }, untilNextMs());
    }
  }

  #lookAtWorkers(): void {
    const { metrics, pool, desired } = this.#options;
    let memoryBytes = 0;
    for (const worker of pool.alive) {
      const usage = worker.usage();
      this.#cpuMs.set(worker.id, usage.cpuMs);
      pool.measured(worker, usage.memoryBytes);
      memoryBytes += usage.memoryBytes;
    }
    const cpuMs = [...this.#cpuMs.values()].reduce((sum, each) => sum + each, this.#goneCpuMs);
    const up = pool.readyCount;
    const starting = pool.present + pool.joined.readyCount - up;
    const cpuSeconds = cpuMs / 1_000;
    metrics.workersObserved({ up, starting, desired: desired(), cpuSeconds, memoryBytes });
  }

  async #lookAtQueue(): Promise<void> {
    const { deploymentId, storage, metrics, endpoints, now } = this.#options;
    const counts = await storage.countTasks({ deploymentId });
    const nowMs = now();
    // Without queued tasks there is no oldest one to look up.
    const oldest: readonly OldestWaiting[] = counts.some(({ queued }) => queued > 0)
      ? await storage.oldestWaiting({ deploymentId, nowMs })
      : [];
    const tasks = endpoints().filter(({ kind }) => kind === "task");
    const idle = tasks
      .filter(({ name }) => counts.every(({ endpoint }) => endpoint !== name))
      .map(({ name }) => ({ endpoint: name, queued: 0, running: 0 }));
    for (const { endpoint, queued, running } of [...counts, ...idle]) {
      const { dueAtMs = nowMs } = oldest.find((each) => each.endpoint === endpoint) ?? {};
      const oldestSeconds = Math.max(0, nowMs - dueAtMs) / 1_000;
      metrics.queueObserved(endpoint, { queued, running, oldestSeconds });
    }
  }

  #failed(err: unknown, message: string): void {
    this.#options.log.warn({ err }, message);
  }
}
