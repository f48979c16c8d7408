/**
 * A running deployment on this node: the worker pool of its service, the queue in
 * front of it, and its manifest. `deploy` brings in the first or another revision
 * of the service, and changes nothing when that revision cannot be loaded.
 */
import { type Problem, problem, shuttingDown } from "../errors.ts";
import type { DeploymentMetrics, MeasuredDeployment } from "../metrics/metrics.ts";
import { Pool } from "../pool/pool.ts";
import { isLoading, type Worker } from "../pool/worker.ts";
import type { WorkerEnd } from "../pool/worker-end.ts";
import type { ServiceCode } from "../pool/worker-options.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import { UnitNames } from "../queue/attempts.ts";
import { Calls } from "../queue/calls/calls.ts";
import { Queue } from "../queue/queue.ts";
import { ScheduleFirer } from "../queue/schedules/firing.ts";
import type { Tasks } from "../queue/tasks.ts";
import { takersOf } from "../service/mounts.ts";
import type { PausedEndpoint } from "../storage/accounts/organizations.ts";
import type { NodeWorkers } from "../storage/hosting/nodes.ts";
import { workerIdOn } from "../tasks/worker-id.ts";
import type { DeploymentTracing } from "../tracing/tracing.ts";
import { DeploymentCounts } from "./counts.ts";
import { Joining } from "./joining.ts";
import { Observer } from "./observer.ts";
import type { DeploymentOptions } from "./options.ts";
import {
  NO_TAKERS,
  type QueuedFacts,
  type QueuedKnowledge,
  type QueuedReason,
  type QueuedTask,
  queuedReason,
} from "./queued-reason.ts";
import { type FoundEndpoint, Rollout } from "./rollout.ts";
import { type Scale, Scaling } from "./scaling.ts";
import { ScratchFolders } from "./scratch.ts";
import { withoutSecrets } from "./shown-paths.ts";
import { type DeploymentStatus, factsOf, statusOf, WAITING_FOR_ROOM } from "./state.ts";
import { WorkerList } from "./worker-list.ts";
import { Workers } from "./workers.ts";

/**
 * How long a drained deployment waits for a storage that does not take the ends of its last
 * attempts.
 */
const ATTEMPTS_SETTLE_MS = 5_000;
/** How long a call waits for the first worker of a deployment at rest, however long that may load. */
const FIRST_WORKER_MS = 120_000;
/** How long tasks may be kept where no operator says less. */
const MAX_RETENTION_MS = 365 * 86_400_000;
/** What a task waits for whose endpoint is paused. */
const PAUSED = "its endpoint is paused: tasks start when it is resumed";
const LEASE_LOST = "its lease had expired";

/** What begins with the first revision. */
interface OpenDeployment {
  readonly name: string;
  readonly queue: Queue;
  /** Undefined where the number of workers is fixed. */
  readonly scaling: Scaling | undefined;
  /** Undefined where nothing is counted. */
  readonly observer: Observer | undefined;
  /** Undefined where a deployment has no record. */
  readonly schedules: ScheduleFirer | undefined;
}

export class Deployment implements AsyncDisposable {
  readonly calls: Calls;
  /** Undefined where nothing is traced. */
  readonly tracing: DeploymentTracing | undefined;
  readonly #options: DeploymentOptions;
  readonly #units: UnitNames;
  readonly #pool: Pool;
  readonly #scratch = new ScratchFolders();
  readonly #workers: Workers;
  readonly #counts = new DeploymentCounts();
  /** Takes in workers on other machines. */
  readonly joining: Joining;
  readonly #list = new WorkerList(() => this.#options.now());
  #opened: OpenDeployment | undefined;
  #scale: Scale | undefined;
  readonly #rollout: Rollout;
  #draining = false;
  #closed: (() => Problem) | undefined;
  readonly #storageHealth = new StorageHealth();
  #metrics: DeploymentMetrics | undefined;

  constructor(options: DeploymentOptions) {
    const { maintenance, log, now, newId, readyTimeoutMs } = options;
    this.#options = options;
    this.#units = new UnitNames(log);
    this.#scale = options.scale;
    this.tracing = options.tracing?.of(() => this.name);
    const { tracing } = this;
    this.#workers = new Workers(options, this.#scratch);
    this.#pool = new Pool({
      size: options.workers,
      sizeOf: options.workersOf,
      starts: options.starts,
      room: options.budget && {
        budget: options.budget,
        organization: options.organization,
        deployment: options.record?.name.slice(options.organization.length + 1) ?? "",
        min: () => this.#scale?.min ?? options.workers,
      },
      isUrgent: () => this.calls.anyWait,
      isNeeded: () => this.calls.anyWait || this.#opened?.scaling?.tasksMayWait === true,
      newId: () => workerIdOn(options.nodeId, newId()),
      startWorker: (service, workerId, start) =>
        this.#list.began(
          this.#workers.start(service, workerId, {
            ...start,
            countsOf: (manifest) => this.#counts.worker(workerId, manifest),
            onEgress: (decision) => this.#metrics?.egressDecided(decision),
          }),
          start.gpus,
        ),
      onLoaded: (service, manifest) => this.#rollout.told(service, manifest),
      onReady: (worker) => {
        const { id, lease } = this.#list.began(worker);
        return maintenance.leases.open(id, () => this.#pool.kill(id, LEASE_LOST), lease);
      },
      onExit: (worker, end) => this.#onExit(worker, end),
      onRestartFailed: (err) => this.#onRestartFailed(err),
      onReplaced: (cause) => this.#metrics?.workerReplaced(cause),
      onCapacity: () => this.#onCapacity(),
      // Callers wait, and tasks may: those go first.
      onMountSlot: () => this.calls.slotFree(),
      onWaiting: () => this.#onWaiting(),
      onEvicted: () => this.#opened?.scaling?.workerEvicted(),
    });
    this.joining = new Joining({
      options,
      pool: this.#pool,
      queue: () => this.queue,
      counts: this.#counts,
      list: this.#list,
      find: (endpoint) => this.find(endpoint),
      onCapacity: () => this.#onCapacity(),
    });
    this.#rollout = new Rollout({
      policy: options,
      pool: this.#pool,
      now,
      lastLines: (service) => this.#workers.lastLines(service),
      onTakeover: (manifest) => {
        this.#opened ??= this.#openWith(manifest);
      },
      onActive: (manifest) => this.#onActive(manifest),
      onEnd: () => {
        this.#opened?.queue.failUnserved();
        options.onReadiness();
      },
      onTold: (...told) => options.onTold?.(...told),
    });
    this.calls = new Calls({
      pool: this.#pool,
      log,
      newId,
      tracing,
      units: this.#units,
      onUsed: (use) => options.callUsage?.add({ deploymentId: this.deploymentId, ...use }),
      heldPieces: options.heldPieces,
      onWaiting: () => {
        this.#pool.crowded();
        this.#opened?.scaling?.wake();
      },
      onMountSlot: () => this.#opened?.queue.wake(),
      onBatch: (...formed) => this.#metrics?.batchFormed(...formed),
      ...(options.scale && { firstWorkerMs: Math.min(readyTimeoutMs, FIRST_WORKER_MS) }),
    });
  }

  get files(): DeploymentOptions["files"] {
    return this.#options.files;
  }

  get readers(): DeploymentOptions["readers"] {
    return this.#options.readers;
  }

  /** The id under which its tasks are stored. Without a record, throws before the first `deploy`. */
  get deploymentId(): string {
    return this.#options.record?.deploymentId ?? this.#open.name;
  }

  /** `organization/app`. Without a record, throws before the first `deploy`. */
  get name(): string {
    return this.#options.record?.name ?? this.#open.name;
  }

  /** Undefined before the first `deploy`, and where nothing is counted. */
  get metrics(): DeploymentMetrics | undefined {
    return this.#metrics;
  }

  /** Its labels in metrics. Without a record, throws before the first `deploy`. */
  get measured(): MeasuredDeployment {
    return this.#labelsOf(this.name, this.deploymentId);
  }

  /** Its workers on this node, as people see them. */
  get workers(): NodeWorkers {
    const wanted = this.#opened?.scaling?.wanted ?? 0;
    return { ...this.#list.describe(this.#pool.alive), ...(wanted > 0 && { wanted }) };
  }

  /** Takes tasks and changes them. Throws NO_WORKER before the first `deploy`. */
  get queue(): Queue {
    return this.#open.queue;
  }

  /** Its tasks, for those who ask. Throws NO_WORKER before the first `deploy`. */
  get tasks(): Tasks {
    return this.queue.tasks;
  }

  /**
   * True when it takes calls: a worker is ready or starts on demand, the storage
   * answers, and the node is not shutting down.
   */
  get ready(): boolean {
    const wakes =
      this.#rollout.revision !== undefined &&
      this.#pool.awaits?.isWhole !== true &&
      this.#scale?.min === 0 &&
      this.#pool.size === 0;
    return !this.#draining && this.#storageHealth.good && (this.#pool.ready || wakes);
  }

  /** Whether a worker takes calls, here or on a machine that has joined this node. */
  get hasWorker(): boolean {
    return this.#pool.ready;
  }

  /** How the last worker of what serves ended, or why it could not start. */
  get lastFault(): string | undefined {
    return this.#pool.lastFault;
  }

  /** Its status on this node. */
  get status(): DeploymentStatus {
    const about = { draining: this.#draining, min: this.#scale?.min };
    return statusOf(factsOf(this.#pool, this.#rollout, about));
  }

  /**
   * Why a task of it is queued, as far as this node knows by itself. `known` goes before what the
   * deployment knows.
   */
  whyQueued(task: QueuedTask, known?: QueuedKnowledge): QueuedReason {
    const failure = known?.failure === undefined ? {} : { failure: this.#said(known.failure) };
    return queuedReason(task, { ...this.#queuedFacts(task.endpoint), ...known, ...failure });
  }

  /** Changes the bounds of the number of workers. Only for a deployment made with `scale`. */
  set scale(scale: Scale) {
    this.#scale = scale;
    if (scale.max === 0) {
      this.#pool.dismissJoined();
    }
    if (this.#opened?.scaling) {
      this.#opened.scaling.scale = scale;
    }
  }

  /** The manifest of the serving revision. Throws NO_WORKER before the first `deploy`. */
  get manifest(): ServiceManifest {
    return this.#rollout.revision?.manifest ?? starting();
  }

  /** An endpoint by name; undefined for an unknown one. */
  find(endpoint: string): EndpointManifest | undefined {
    return this.#rollout.revision?.find(endpoint)?.manifest;
  }

  /** An endpoint with the reader of its arguments. Throws ENDPOINT_NOT_FOUND or NO_WORKER. */
  endpoint(name: string): FoundEndpoint {
    return (this.#rollout.revision ?? starting()).endpoint(name, this.name);
  }

  /** A task endpoint. Throws as `endpoint` does, and ENDPOINT_NOT_A_TASK for an api. */
  taskEndpoint(name: string): FoundEndpoint {
    return (this.#rollout.revision ?? starting()).taskEndpoint(name, this.name);
  }

  /**
   * Throws while the node shuts down or the deployment is closed to new work, and BUDGET_SPENT
   * where a spent budget bounds it. A submit with an idempotency key may be a repeat, which stores
   * nothing new: for it, BUDGET_SPENT is returned, and the queue throws it unless a task has the key.
   * @param tokenId the token of the caller; undefined: none
   * @param key the idempotency key of a submit; empty: it has none
   */
  admit(
    kind: EndpointManifest["kind"],
    tokenId: string | undefined,
    key = "",
  ): Problem | undefined {
    if (this.#draining) {
      throw shuttingDown();
    }
    if (this.#closed) {
      throw this.#closed();
    }
    const refusal = this.#options.budgetRefusal?.(kind, tokenId);
    if (refusal !== undefined && key === "") {
      throw refusal;
    }
    return refusal;
  }

  /**
   * Closes the deployment to new work, which is refused with this problem; undefined
   * opens it again. Its tasks stay readable.
   */
  set closed(refusal: (() => Problem) | undefined) {
    this.#closed = refusal;
  }

  /** Why the first worker of a roll-out waits for room on the node; undefined when it does not. */
  get rolloutWaits(): string | undefined {
    return this.#pool.rolloutWaits;
  }

  /** What serves; undefined before the first `deploy`. */
  get service(): ServiceCode | undefined {
    return this.#rollout.service;
  }

  /**
   * Starts workers of this service, at least one. When all are ready they take over,
   * and the old workers finish their calls. Rejects with a `RevisionFailed` when the
   * service cannot be loaded; then only `status` has changed. Rejects with the
   * signal's reason when it aborts before the takeover; then nothing has changed.
   */
  deploy(service: ServiceCode, signal?: AbortSignal): Promise<ServiceManifest> {
    return this.#rollout.deploy(service, signal);
  }

  /**
   * Serves a revision that has served before, with its known manifest, and does not
   * wait for its workers: for a node that starts. Throws a `RevisionFailed`.
   */
  resume(service: ServiceCode, manifest: ServiceManifest): void {
    this.#rollout.resume(service, manifest);
  }

  /** Endpoints were paused or resumed: claims tasks of all that are not. */
  pausesChanged(): void {
    if (this.#rollout.revision) {
      this.#opened?.queue.serve(this.#rollout.revision.manifest);
    }
  }

  /** What serves is what is wanted: forgets a roll-out that failed. */
  stay(): void {
    this.#rollout.stay();
  }

  /**
   * Takes no more work and lets running calls finish. Tasks that have not finished
   * after `drainMs` go back to the queue.
   */
  async drain(drainMs: number): Promise<void> {
    this.#draining = true;
    this.#options.onReadiness();
    this.calls.close();
    await this.#opened?.observer?.[Symbol.asyncDispose]();
    await this.#opened?.scaling?.[Symbol.asyncDispose]();
    await this.#opened?.schedules?.[Symbol.asyncDispose]();
    await this.#opened?.queue.stop();
    await this.#pool.close(drainMs);
    await this.#opened?.queue.settled(ATTEMPTS_SETTLE_MS);
  }

  /** Kills every worker at once, because the node's own process is ending. */
  abandon(): void {
    this.#pool.killAll("the node has ended");
    this.#scratch.removeAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0);
    await this.#options.maintenance.leases.closed();
    this.#opened?.queue[Symbol.dispose]();
    this.#metrics?.end();
    this.#scratch.removeAll();
  }

  /** How long a submit may have its task kept at most. */
  get maxRetentionMs(): number {
    return this.#options.maxRetentionMs ?? MAX_RETENTION_MS;
  }

  get #open(): OpenDeployment {
    return this.#opened ?? starting();
  }

  #labelsOf(name: string, deploymentId: string): MeasuredDeployment {
    const { organization, counted: { organizationId = "" } = {} } = this.#options;
    const deployment = name.slice(organization.length + 1);
    return { organizationId, organization, deployment, deploymentId };
  }

  /** Opens the queue and what follows it. Tasks are claimed once the queue serves. */
  #openWith(manifest: ServiceManifest): OpenDeployment {
    const { organization, record, workers, counted, storage, log, now } = this.#options;
    const { tracing, calls } = this;
    const pool = this.#pool;
    const rollout = this.#rollout;
    const name = record?.name ?? `${organization}/${manifest.name}`;
    const deploymentId = record?.deploymentId ?? name;
    const metrics = counted?.metrics.deployment(this.#labelsOf(name, deploymentId));
    const isPaused = (endpoint: string): boolean => this.#pauseOf(endpoint) !== undefined;
    this.#metrics = metrics;
    const queue = new Queue({
      ...this.#options,
      deploymentId,
      pool,
      metrics,
      tracing,
      units: this.#units,
      limits: this.#options,
      keeper: this.files.task,
      revisions: record && rollout,
      retention: () => ({ ownMs: this.#options.retentionMs?.() ?? 0, maxMs: this.maxRetentionMs }),
      slots: (endpoint) =>
        Math.max(pool.size, this.#scale?.max ?? workers) * (this.find(endpoint)?.concurrency ?? 0),
      isPaused,
      awaited: (endpoint) =>
        isPaused(endpoint)
          ? PAUSED
          : pool.serves({ name: endpoint })
            ? undefined
            : pool.awaits?.endpoints.get(endpoint),
      onStorage: (work, answers) => this.#onStorage(work, answers),
      onTasksWait: () => scaling?.tasksWait(),
      onUnknown: () => scaling?.prove(),
      onSchedule: (atMs) => schedules?.expect(atMs),
    });
    const schedules =
      record &&
      new ScheduleFirer({
        ...{ deploymentId, storage, queue, log, now },
        revision: () => this.#served,
        onUnknown: () => scaling?.prove(),
        admit: () => this.admit("task", undefined),
      });
    const { runTimes } = queue;
    const endpoints = (): readonly EndpointManifest[] =>
      rollout.revision === undefined ? [] : takersOf(rollout.revision.manifest);
    const observed = { deploymentId, storage, pool, endpoints, log, now };
    const isBelieved = (): boolean => rollout.isBelieved;
    const scaling =
      this.#scale && new Scaling({ ...observed, isBelieved, calls, runTimes }, this.#scale);
    const desired = (): number => scaling?.desired ?? pool.size;
    const observer = metrics && new Observer({ ...observed, metrics, desired });
    return { name, queue, scaling, observer, schedules };
  }

  /** What schedules may call: the endpoints of the revision that serves. */
  get #served() {
    const { revision, isNewest } = this.#rollout;
    return revision && { find: (endpoint: string) => revision.find(endpoint), isNewest };
  }

  #pauseOf(name: string): PausedEndpoint | undefined {
    return this.#options.pausedEndpoints?.().find(({ endpoint }) => endpoint === name);
  }

  #queuedFacts(name: string): QueuedFacts {
    const pool = this.#pool;
    const endpoint = this.find(name);
    const { recentEnd } = pool;
    const shortage = pool.waiting ?? pool.rolloutWaits;
    const loading = [...pool.alive].filter((one) => isLoading(one) && one.runs({ name }));
    const refused = this.#closed?.().reason;
    return {
      nowMs: this.#options.now(),
      isStopped: refused === "DEPLOYMENT_STOPPED",
      paused: this.#pauseOf(name),
      isDraining: this.#draining,
      storageAnswers: this.#storageHealth.good,
      failure: refused === "DEPLOYMENT_FAILED" ? this.#said(this.lastFault) : undefined,
      serves: this.#rollout.revision !== undefined,
      hasEndpoint: endpoint !== undefined,
      awaited: pool.awaits?.endpoints.get(name),
      joinedFault: pool.joined.fault,
      workers: {
        wanted: pool.size,
        ...(endpoint ? pool.takers(endpoint) : NO_TAKERS),
        startingSinceMs: this.#list.oldest(loading),
      },
      shortage: shortage === undefined ? undefined : { ofGpus: pool.isShortOfGpus, text: shortage },
      crash: recentEnd && { ...recentEnd, text: this.#said(recentEnd.reason) },
      gathers: this.#opened?.queue.tasks.gather(name) === true,
      limit: pool.awaits?.isWhole === true ? undefined : this.#scale?.max,
      perKey: endpoint?.byKey,
    };
  }

  /** Why a worker ended, with the last line that it wrote, and without the values of its secrets. */
  #said(reason = ""): string {
    const line = this.#rollout.lines.findLast((each) => each.trim() !== "")?.trim() ?? "";
    const text =
      line === "" || reason.includes(line) ? reason : `${reason}; its last line: ${line}`;
    return withoutSecrets(text, this.#rollout.shown);
  }

  #onActive(manifest: ServiceManifest): void {
    const { queue, scaling } = this.#open;
    if (this.#metrics) {
      this.#counts.serve(this.#metrics.custom, manifest);
    }
    queue.serve(manifest);
    scaling?.revisionStarted();
  }

  #onExit(worker: Worker, { message: reason }: WorkerEnd): void {
    if (!this.#draining && !worker.stopping) {
      const { id, pid, revision } = worker;
      this.#options.log.warn({ worker: id, pid, revision, reason }, "a worker ended");
    }
    this.#opened?.observer?.workerEnded(worker);
    this.#options.onReadiness();
    const { leases } = this.#options.maintenance;
    if (worker.isParted) {
      leases.leave(worker.id);
    } else {
      leases.close(worker.id, this.#opened?.queue.recorded(worker.id));
    }
  }

  #onRestartFailed(err: unknown): void {
    this.#options.log.error({ err }, "a worker could not be replaced yet");
    this.#options.onReadiness();
    if (this.#scale) {
      this.calls.refuseWaiting(err instanceof Error ? err.message : String(err));
    }
  }

  #onCapacity(): void {
    this.#options.onReadiness();
    this.#opened?.queue.wake();
    this.calls.slotFree();
  }

  #onWaiting(): void {
    const { log, onReadiness } = this.#options;
    const { waiting, rolloutWaits } = this.#pool;
    const reason = waiting ?? rolloutWaits;
    if (reason !== undefined) {
      log.info({ reason }, WAITING_FOR_ROOM);
    }
    onReadiness();
  }

  /** The storage refused an operation: this one is not ready until its next heartbeat gets through. */
  storageRefused(): void {
    this.#onStorage("heartbeat", false);
  }

  #onStorage(work: "claims" | "heartbeat", answers: boolean): void {
    this.#storageHealth.heard(work, answers);
    this.#options.onReadiness();
  }
}

function starting(): never {
  throw problem("NO_WORKER", "the deployment is starting: try again", { retryAfterMs: 1_000 });
}

/** Tracks whether the storage answers, from the outcome of a deployment's own requests. */
class StorageHealth {
  /** The kinds of work whose last request failed. */
  readonly #failing = new Set<"claims" | "heartbeat">();

  get good(): boolean {
    return this.#failing.size === 0;
  }

  /**
   * Records the outcome of a request. A claim that finds nothing writes nothing, so
   * it succeeds on a full disk and does not clear a failed heartbeat. A heartbeat
   * writes if any worker of the node has a lease, so its success clears both.
   */
  heard(work: "claims" | "heartbeat", answers: boolean): void {
    if (!answers) {
      this.#failing.add(work);
    } else if (work === "heartbeat") {
      this.#failing.clear();
    } else {
      this.#failing.delete(work);
    }
  }
}
