/**
 * A deployment that this node hosts: the workers that run its service, the
 * queue in front of them, and what its manifest says. `deploy` brings in a
 * revision of the service, the first one or another, and changes nothing when
 * that one cannot be loaded.
 */
import { type Problem, problem, shuttingDown } from "../errors.ts";
import type { DeploymentMetrics } from "../metrics/deployment.ts";
import type { MeasuredDeployment, Metrics } from "../metrics/metrics.ts";
import type { ServiceCode } from "../pool/options.ts";
import { Pool } from "../pool/pool.ts";
import type { StartGate } from "../pool/start-gate.ts";
import type { WorkerProcess } from "../pool/worker.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { Attempts } from "../queue/attempts.ts";
import { Calls } from "../queue/calls.ts";
import { Changes } from "../queue/changes.ts";
import type { Maintenance } from "../queue/maintenance.ts";
import type { Queue } from "../queue/queue.ts";
import { RecentTasks } from "../queue/recent.ts";
import type { Notifier } from "../storage/notifier.ts";
import type { Storage } from "../storage/storage.ts";
import type { DeploymentTracing, Tracing } from "../tracing/tracing.ts";
import { DeploymentCounts } from "./counts.ts";
import { type DeploymentQueue, openDeploymentQueue } from "./deployment-queue.ts";
import type { FoundEndpoint } from "./revision.ts";
import { Rollout, type RolloutPolicy } from "./rollout.ts";
import type { Scale } from "./scaling.ts";
import { ScratchFolders } from "./scratch.ts";
import { type DeploymentStatus, statusOf } from "./state.ts";
import { StorageHealth } from "./storage-health.ts";
import { Workers, type WorkersOptions } from "./workers.ts";

/** After the drain, for a storage that does not take the ends of the last attempts. */
const SETTLE_MS = 5_000;

export interface DeploymentOptions extends WorkersOptions, RolloutPolicy {
  /** The organization it belongs to; with the service's name it is the deployment's. */
  readonly organization: string;
  /**
   * Which of the platform's deployments it is, with its name as
   * `organization/app`. Default: the only one there is, called by its
   * organization and its service.
   */
  readonly record?: { readonly deploymentId: string; readonly name: string };
  readonly storage: Storage;
  /** How nodes on the same database tell each other; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  /** The rounds of the node, which began before. */
  readonly maintenance: Maintenance;
  readonly newId: () => string;
  readonly now: () => number;
  /** Where the node's workers wait for room to start. Default: all start at once. */
  readonly starts?: StartGate | undefined;
  /** Worker processes at first. */
  readonly workers: number;
  /** Lets their number follow the load. Default: it stays. */
  readonly scale?: Scale;
  /** Callers that may wait for tasks at a time. */
  readonly maxWaiting: number;
  /** Where the node counts, and the organization whose series these are. Default: nothing is counted. */
  readonly counted?: { readonly metrics: Metrics; readonly organizationId: string } | undefined;
  /** Where the node traces. Default: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** `ready` or `status` may have changed. */
  onReadiness(): void;
}

export class Deployment implements AsyncDisposable {
  readonly calls: Calls;
  /** Where it tells of what happens; undefined where nothing is traced. */
  readonly tracing: DeploymentTracing | undefined;
  readonly #options: DeploymentOptions;
  readonly #changes: Changes;
  readonly #recent = new RecentTasks();
  readonly #attempts: Attempts;
  readonly #pool: Pool;
  readonly #scratch = new ScratchFolders(Date.now());
  readonly #workers: Workers;
  readonly #counts = new DeploymentCounts();
  #opened: (DeploymentQueue & { readonly name: string }) | undefined;
  #scale: Scale | undefined;
  readonly #rollout: Rollout;
  #draining = false;
  #closed: (() => Problem) | undefined;
  readonly #storageHealth = new StorageHealth();
  #metrics: DeploymentMetrics | undefined;

  constructor(options: DeploymentOptions) {
    const { storage, maintenance, log, now, newId, readyTimeoutMs, counted } = options;
    this.#options = options;
    this.#scale = options.scale;
    this.tracing = options.tracing?.of(() => this.name);
    const { tracing } = this;
    this.#changes = new Changes(options.maxWaiting);
    this.#workers = new Workers(options, this.#scratch);
    this.#attempts = new Attempts({
      storage,
      changes: this.#changes,
      recent: this.#recent,
      log,
      now,
      metricsOf: counted?.metrics.byId,
      tracing,
      onSlotFree: () => this.#opened?.dispatcher.slotFree(),
      onQueued: (endpoint, runAtMs) => this.#opened?.dispatcher.requeued(endpoint, runAtMs),
    });
    this.#pool = new Pool({
      size: options.workers,
      starts: options.starts,
      isUrgent: () => this.calls.anyWait,
      newId,
      workerOptions: (service, workerId) => ({
        ...this.#workers.optionsFor(service, workerId),
        countsOf: (manifest) => this.#counts.worker(workerId, manifest),
      }),
      onReady: ({ id }) => maintenance.leases.open(id, () => this.#leaseLost(id)),
      onExit: (worker, reason) => this.#onExit(worker, reason),
      onRestartFailed: (err) => this.#onRestartFailed(err),
      onReplaced: (cause) => this.#metrics?.workerReplaced(cause),
      onCapacity: () => this.#onCapacity(),
    });
    this.#rollout = new Rollout({
      policy: options,
      pool: this.#pool,
      now,
      lastLines: (service) => this.#workers.lastLines(service),
      onTakeover: (manifest) => {
        this.#opened ??= this.#openQueue(manifest);
      },
      onActive: (manifest) => this.#onActive(manifest),
      onEnd: () => {
        this.#opened?.unserved?.look();
        options.onReadiness();
      },
    });
    this.calls = new Calls({
      pool: this.#pool,
      log,
      newId,
      tracing,
      onWaiting: () => this.#opened?.scaling?.wake(),
      ...(options.scale && { firstWorkerMs: readyTimeoutMs }),
    });
  }

  get files(): DeploymentOptions["files"] {
    return this.#options.files;
  }

  /** What its tasks are stored under; throws before the first `deploy` of one without a record. */
  get deploymentId(): string {
    return this.#options.record?.deploymentId ?? this.#open.name;
  }

  /** `organization/app`; throws before the first `deploy` of one without a record. */
  get name(): string {
    return this.#options.record?.name ?? this.#open.name;
  }

  /** Where it counts; undefined before the first `deploy`, and where nothing is counted. */
  get metrics(): DeploymentMetrics | undefined {
    return this.#metrics;
  }

  /** As metrics know it; throws before the first `deploy` of one without a record. */
  get measured(): MeasuredDeployment {
    const { organization, counted } = this.#options;
    return {
      organizationId: counted?.organizationId ?? "",
      organization,
      deployment: this.name.slice(organization.length + 1),
      deploymentId: this.deploymentId,
    };
  }

  get queue(): Queue {
    return this.#open.queue;
  }

  /**
   * True when calls can be taken: a worker is ready or starts when one comes,
   * the storage answers, and the node is not shutting down.
   */
  get ready(): boolean {
    const wakes =
      this.#rollout.revision !== undefined && this.#scale?.min === 0 && this.#pool.size === 0;
    return !this.#draining && this.#storageHealth.good && (this.#pool.ready || wakes);
  }

  /** How it fares on this node. */
  get status(): DeploymentStatus {
    const { size, readyCount, crashLoop, lastFault } = this.#pool;
    const { revision, failed, lines } = this.#rollout;
    return statusOf({
      loaded: revision !== undefined,
      draining: this.#draining,
      revision: revision?.number,
      ready: readyCount,
      wanted: size,
      enough: Math.min(size, this.#scale?.min ?? size),
      crashLoop,
      lastFault,
      failed,
      lines,
    });
  }

  /** Other bounds for the number of its workers; only for one that was made with some. */
  set scale(scale: Scale) {
    this.#scale = scale;
    if (this.#opened?.scaling) {
      this.#opened.scaling.scale = scale;
    }
  }

  /** What the service says of itself; throws before the first `deploy`. */
  get manifest(): ServiceManifest {
    return this.#rollout.revision?.manifest ?? starting();
  }

  /** An endpoint by name; undefined when the service has none such. */
  find(endpoint: string): EndpointManifest | undefined {
    return this.#rollout.revision?.find(endpoint)?.manifest;
  }

  /** An endpoint with the reader of its arguments; throws ENDPOINT_NOT_FOUND. */
  endpoint(name: string): FoundEndpoint {
    return (this.#rollout.revision ?? starting()).endpoint(name, this.name);
  }

  /** A task endpoint; throws ENDPOINT_NOT_A_TASK for an api. */
  taskEndpoint(name: string): FoundEndpoint {
    return (this.#rollout.revision ?? starting()).taskEndpoint(name, this.name);
  }

  /** Refuses new work while the node shuts down, or while it is closed. */
  admit(): void {
    if (this.#draining) {
      throw shuttingDown();
    }
    if (this.#closed) {
      throw this.#closed();
    }
  }

  /** What new work is refused with from now on; undefined: it is taken. Tasks stay, and can be asked for. */
  set closed(refusal: (() => Problem) | undefined) {
    this.#closed = refusal;
  }

  /**
   * Starts workers of this service, one at least; when all are ready they take
   * over, and those of the service before finish what they have begun. Rejects
   * with a `RevisionFailed` when the service cannot be loaded; then nothing has
   * changed but `status`. Rejects with the signal's reason when it aborts
   * before; then nothing has changed at all.
   */
  deploy(service: ServiceCode, signal?: AbortSignal): Promise<ServiceManifest> {
    return this.#rollout.deploy(service, signal);
  }

  /**
   * Takes on a revision that has served before, with the manifest that it had,
   * and starts its workers when they are needed: for a node that starts. Throws a `RevisionFailed`.
   */
  resume(service: ServiceCode, manifest: ServiceManifest): void {
    this.#rollout.resume(service, manifest);
  }

  /**
   * Takes no more work and lets what runs finish. Tasks that are not finished
   * after `drainMs` go back to the queue.
   */
  async drain(drainMs: number): Promise<void> {
    this.#draining = true;
    this.#options.onReadiness();
    this.calls.close();
    await this.#opened?.stop();
    await this.#pool.close(drainMs);
    await this.#attempts.settled(SETTLE_MS);
    this.#changes.close();
  }

  /** Ends every worker at once, for the moment in which the node's own process ends. */
  abandon(): void {
    this.#pool.killAll("the node has ended");
    this.#scratch.removeAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0);
    await this.#options.maintenance.leases.closed();
    this.#opened?.[Symbol.dispose]();
    this.#metrics?.end();
    this.#scratch.removeAll();
  }

  get #open(): DeploymentQueue & { readonly name: string } {
    return this.#opened ?? starting();
  }

  #openQueue(manifest: ServiceManifest): DeploymentQueue & { readonly name: string } {
    const { organization, record, workers, counted } = this.#options;
    const name = record?.name ?? `${organization}/${manifest.name}`;
    const deploymentId = record?.deploymentId ?? name;
    this.#metrics = counted?.metrics.deployment({
      organizationId: counted.organizationId,
      organization,
      deploymentId,
      deployment: name.slice(organization.length + 1),
    });
    const work = openDeploymentQueue(this.#options, {
      deploymentId,
      scale: this.#scale,
      pool: this.#pool,
      calls: this.calls,
      attempts: this.#attempts,
      changes: this.#changes,
      recent: this.#recent,
      workers,
      rollout: this.#rollout,
      metrics: this.#metrics,
      metricsOf: counted?.metrics.byId,
      tracing: this.tracing,
      onStorage: (answers) => this.#onStorage("claims", answers),
      onRound: (answers) => this.#onStorage("heartbeat", answers),
    });
    return { ...work, name };
  }

  #onActive(manifest: ServiceManifest): void {
    const { dispatcher, scaling } = this.#open;
    if (this.#metrics) {
      this.#counts.serve(this.#metrics.custom, manifest);
    }
    dispatcher.start(manifest, (claimed) => this.#rollout.refusal(claimed));
    scaling?.revisionStarted();
  }

  #onExit(worker: WorkerProcess, reason: string): void {
    this.#scratch.remove(worker.scratchFolder, worker.pid);
    if (!this.#draining && !worker.stopping) {
      const { id, pid, revision } = worker;
      this.#options.log.warn({ worker: id, pid, revision, reason }, "a worker ended");
    }
    this.#opened?.observer?.workerEnded(worker);
    this.#options.onReadiness();
    this.#options.maintenance.leases.close(worker.id);
  }

  #leaseLost(workerId: string): void {
    this.#pool.kill(workerId, "its lease had expired");
  }

  #onRestartFailed(err: unknown): void {
    this.#options.log.error({ err }, "a worker could not be replaced yet");
    this.#options.onReadiness();
    if (this.#scale && !this.#pool.ready) {
      this.calls.refuseWaiting(err instanceof Error ? err.message : String(err));
    }
  }

  #onCapacity(): void {
    this.#options.onReadiness();
    this.#opened?.dispatcher.slotFree();
    this.calls.slotFree();
  }

  #onStorage(work: "claims" | "heartbeat", answers: boolean): void {
    this.#storageHealth.heard(work, answers);
    this.#options.onReadiness();
  }
}

function starting(): never {
  throw problem("NO_WORKER", "the deployment is starting: try again", { retryAfterMs: 1_000 });
}
