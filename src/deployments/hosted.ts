/**
 * A deployment that this node hosts: the workers that run its service, the
 * queue in front of them, and what its manifest says. `deploy` brings in a
 * revision of the service, the first one or another, and changes nothing when
 * that one cannot be loaded.
 */
import { problem, shuttingDown } from "../errors.ts";
import { Attempts } from "../queue/attempts.ts";
import { Calls } from "../queue/calls.ts";
import { Changes } from "../queue/changes.ts";
import { Leases } from "../queue/leases.ts";
import type { Log } from "../queue/log.ts";
import type { Notifier } from "../queue/notifier.ts";
import { type OpenQueue, openQueue } from "../queue/open.ts";
import { Pool } from "../queue/pool/pool.ts";
import type { WorkerOptions, WorkerProcess } from "../queue/pool/worker.ts";
import type { Queue } from "../queue/queue.ts";
import { RecentTasks } from "../queue/recent.ts";
import type { EndpointManifest, ServiceManifest } from "../sdk/manifest.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { ArgumentsReader } from "./input/arguments.ts";
import { type WorkerAccess, workerPermissions } from "./permissions.ts";
import { ScratchFolders } from "./scratch.ts";

/** After the drain, for a storage that does not take the ends of the last attempts. */
const SETTLE_MS = 5_000;

export interface HostedOptions {
  /** The organization it belongs to; with the service's name it is the deployment's. */
  readonly organization: string;
  readonly storage: Storage;
  /** How nodes on the same database tell each other; undefined where there is one node only. */
  readonly notifier: Notifier | undefined;
  readonly log: Log;
  readonly newId: () => string;
  readonly now: () => number;
  /** Worker processes. */
  readonly workers: number;
  /** Between the abort of a call and the end of its worker. */
  readonly graceMs: number;
  readonly readyTimeoutMs: number;
  readonly maxResultBytes: number;
  /** Callers that may wait for tasks at a time. */
  readonly maxWaiting: number;
  /** What the operator allows workers. Default: nothing more. */
  readonly workerAccess?: WorkerAccess;
  /** `ready` may have changed. */
  onReadiness(): void;
}

/** What exists once the first manifest has told the deployment's name. */
interface Opened extends OpenQueue {
  readonly name: string;
}

export class HostedDeployment implements AsyncDisposable {
  readonly calls: Calls;
  readonly #options: HostedOptions;
  readonly #changes: Changes;
  readonly #recent = new RecentTasks();
  readonly #attempts: Attempts;
  readonly #pool: Pool;
  readonly #leases: Leases;
  #opened: Opened | undefined;
  #manifest: ServiceManifest | undefined;
  #endpoints = new Map<string, { manifest: EndpointManifest; reader: ArgumentsReader }>();
  readonly #scratch = new ScratchFolders(Date.now());
  #draining = false;
  /** What of the storage's work failed last time and has not succeeded since. */
  readonly #failing = new Set<"claims" | "heartbeat">();

  constructor(options: HostedOptions) {
    const { storage, log, now, newId } = options;
    this.#options = options;
    this.#changes = new Changes(options.maxWaiting);
    this.#attempts = new Attempts({
      storage,
      changes: this.#changes,
      recent: this.#recent,
      log,
      now,
      onSlotFree: () => this.#opened?.dispatcher.slotFree(),
      onQueued: (endpoint, runAtMs) => this.#opened?.dispatcher.requeued(endpoint, runAtMs),
    });
    this.#pool = new Pool({
      size: options.workers,
      newId,
      workerOptions: (service) => this.#workerOptions(service),
      onReady: (worker) => this.#leases.open(worker.id),
      onExit: (worker, reason) => this.#onExit(worker, reason),
      onRestartFailed: (err) => log.error({ err }, "a worker could not be replaced yet"),
      onCapacity: () => this.#onCapacity(),
    });
    this.#leases = new Leases({
      storage,
      owner: `pid ${process.pid}`,
      log,
      now,
      onRescued: (tasks) => this.#onRescued(tasks),
      onLost: (leaseId) => this.#pool.kill(leaseId, "its lease had expired"),
      onStorage: (answers) => this.#onStorage("heartbeat", answers),
    });
    this.calls = new Calls({ pool: this.#pool, log, newId });
  }

  /** `organization/service`; throws before the first `deploy`. */
  get name(): string {
    return this.#open.name;
  }

  get queue(): Queue {
    return this.#open.queue;
  }

  /**
   * True when calls can be taken: a worker is ready, the storage answers, and
   * the node is not shutting down.
   */
  get ready(): boolean {
    return !this.#draining && this.#failing.size === 0 && this.#pool.ready;
  }

  /** What the service says of itself; throws before the first `deploy`. */
  get manifest(): ServiceManifest {
    return this.#manifest ?? starting();
  }

  /** An endpoint by name; undefined when the service has none such. */
  find(endpoint: string): EndpointManifest | undefined {
    return this.#endpoints.get(endpoint)?.manifest;
  }

  /** An endpoint with the reader of its arguments; throws ENDPOINT_NOT_FOUND. */
  endpoint(name: string): { manifest: EndpointManifest; reader: ArgumentsReader } {
    const { endpoints } = this.manifest;
    const found = this.#endpoints.get(name);
    if (found === undefined) {
      const names = endpoints.map((endpoint) => endpoint.name).join(", ");
      throw problem(
        "ENDPOINT_NOT_FOUND",
        `deployment ${this.name} has no endpoint ${JSON.stringify(name.slice(0, 64))}; it has: ${names}`,
      );
    }
    return found;
  }

  /** A task endpoint; throws ENDPOINT_NOT_A_TASK for an api. */
  taskEndpoint(name: string): { manifest: EndpointManifest; reader: ArgumentsReader } {
    const found = this.endpoint(name);
    if (found.manifest.kind !== "task") {
      const message = `endpoint ${name} is an api and answers in the call: POST /${name}`;
      throw problem("ENDPOINT_NOT_A_TASK", message);
    }
    return found;
  }

  /** Refuses new work while the node shuts down. */
  admit(): void {
    if (this.#draining) {
      throw shuttingDown();
    }
  }

  /** Returns what a node that is gone left running to the queue, and begins to hold leases. */
  async start(): Promise<void> {
    await this.#leases.start();
  }

  /**
   * Starts workers of this service; when all are ready they take over, and
   * those of the service before finish what they have begun. Rejects with one
   * message when the service cannot be loaded; then nothing has changed.
   */
  async deploy(service: WorkerOptions["service"]): Promise<ServiceManifest> {
    const manifest = await this.#pool.replace(service, (described) => {
      // Both may throw, and nothing has changed then.
      const endpoints = described.endpoints.map((endpoint) => {
        return [
          endpoint.name,
          { manifest: endpoint, reader: new ArgumentsReader(endpoint) },
        ] as const;
      });
      this.#opened ??= this.#openQueue(described);
      this.#endpoints = new Map(endpoints);
      this.#manifest = described;
    });
    this.#open.dispatcher.start(manifest);
    return manifest;
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
    await this.#leases[Symbol.asyncDispose]();
    this.#scratch.removeAll();
  }

  get #open(): Opened {
    return this.#opened ?? starting();
  }

  #openQueue(manifest: ServiceManifest): Opened {
    const { organization, storage, notifier, log, now, newId, graceMs, workers } = this.#options;
    const name = `${organization}/${manifest.name}`;
    const opened = openQueue({
      ...{ deploymentId: name, storage, notifier, log, now, newId, graceMs },
      pool: this.#pool,
      attempts: this.#attempts,
      changes: this.#changes,
      recent: this.#recent,
      runTimes: this.#attempts.runTimes,
      slots: (endpoint) => workers * (this.find(endpoint)?.concurrency ?? 0),
      onStorage: (answers) => this.#onStorage("claims", answers),
    });
    return { name, ...opened };
  }

  #workerOptions(service: WorkerOptions["service"]): WorkerOptions {
    const { graceMs, readyTimeoutMs, maxResultBytes, workerAccess, log } = this.#options;
    const scratchFolder = this.#scratch.create();
    return {
      service,
      scratchFolder,
      permissions: [
        ...workerPermissions(service, workerAccess),
        `--allow-fs-read=${scratchFolder}`,
        `--allow-fs-write=${scratchFolder}`,
      ],
      env: workerAccess?.env ?? {},
      maxResultBytes,
      graceMs,
      readyTimeoutMs,
      onSpawn: (pid) => this.#scratch.record(pid),
      onOutput: (line) => log.info({ from: "service" }, line),
    };
  }

  #onExit(worker: WorkerProcess, reason: string): void {
    this.#scratch.remove(worker.scratchFolder, worker.pid);
    if (!this.#draining && !worker.stopping) {
      this.#options.log.warn({ worker: worker.id, pid: worker.pid, reason }, "a worker ended");
    }
    this.#options.onReadiness();
    this.#leases.close(worker.id);
  }

  #onCapacity(): void {
    this.#options.onReadiness();
    this.#opened?.dispatcher.slotFree();
    this.calls.slotFree();
  }

  /**
   * A claim that finds nothing writes nothing, so on a full disk it succeeds:
   * it says nothing of a heartbeat that failed. A heartbeat always writes.
   */
  #onStorage(work: "claims" | "heartbeat", answers: boolean): void {
    if (!answers) {
      this.#failing.add(work);
    } else if (work === "heartbeat") {
      this.#failing.clear();
    } else {
      this.#failing.delete(work);
    }
    this.#options.onReadiness();
  }

  #onRescued(tasks: readonly Task[]): void {
    for (const task of tasks) {
      this.#changes.publish(task.taskId, task);
      if (task.status === "queued") {
        this.#opened?.dispatcher.requeued(task.endpoint, this.#options.now());
      }
    }
  }
}

function starting(): never {
  throw problem("NO_WORKER", "the deployment is starting: try again", { retryAfterMs: 1_000 });
}
