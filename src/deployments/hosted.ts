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
import { Dispatcher } from "../queue/dispatcher.ts";
import { Leases } from "../queue/leases.ts";
import type { Log } from "../queue/log.ts";
import { Pool } from "../queue/pool/pool.ts";
import type { WorkerOptions, WorkerProcess } from "../queue/pool/worker.ts";
import { Queue } from "../queue/queue.ts";
import { RecentTasks } from "../queue/recent.ts";
import type { EndpointManifest, ServiceManifest } from "../sdk/manifest.ts";
import type { Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { ArgumentsReader } from "./input/arguments.ts";
import { workerPermissions } from "./permissions.ts";
import { ScratchFolders } from "./scratch.ts";

export interface HostedOptions {
  /** The organization it belongs to; with the service's name it is the deployment's. */
  readonly organization: string;
  readonly storage: Storage;
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
  /** `ready` may have changed. */
  onReadiness(): void;
}

/** What exists once the first manifest has told the deployment's name. */
interface Opened {
  readonly name: string;
  readonly dispatcher: Dispatcher;
  readonly queue: Queue;
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
  readonly #scratch = new ScratchFolders();
  #draining = false;

  constructor(options: HostedOptions) {
    const { storage, log, now, newId, maxResultBytes } = options;
    this.#options = options;
    this.#changes = new Changes(options.maxWaiting);
    this.#attempts = new Attempts({
      storage,
      changes: this.#changes,
      recent: this.#recent,
      log,
      now,
      maxResultBytes,
      onSlotFree: (endpoint) => this.#opened?.dispatcher.slotFree(endpoint),
    });
    this.#pool = new Pool({
      size: options.workers,
      newId,
      workerOptions: (service) => this.#workerOptions(service),
      onReady: (worker) => this.#leases.open(worker.id),
      onExit: (worker, reason) => this.#onExit(worker, reason),
      onCapacity: () => this.#onCapacity(),
    });
    this.#leases = new Leases({
      storage,
      owner: `pid ${process.pid}`,
      log,
      now,
      onRescued: (tasks) => this.#onRescued(tasks),
      onLost: (leaseId) => this.#pool.kill(leaseId, "its lease had expired"),
    });
    this.calls = new Calls({ pool: this.#pool, log, newId, maxResultBytes });
  }

  /** `organization/service`; throws before the first `deploy`. */
  get name(): string {
    return this.#open.name;
  }

  get queue(): Queue {
    return this.#open.queue;
  }

  /** True when calls can be taken: a worker is ready and the node is not shutting down. */
  get ready(): boolean {
    return !this.#draining && this.#pool.ready;
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
  async deploy(service: WorkerOptions["service"], drainMs: number): Promise<ServiceManifest> {
    const manifest = await this.#pool.replace(service, drainMs, (described) => {
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
    await this.#opened?.dispatcher[Symbol.asyncDispose]();
    await this.#pool.close(drainMs);
    await this.#attempts.settled();
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
    const { organization, storage, log, now, newId, graceMs } = this.#options;
    const name = `${organization}/${manifest.name}`;
    const shared = { deploymentId: name, storage, attempts: this.#attempts, now };
    const dispatcher = new Dispatcher({ ...shared, pool: this.#pool, log });
    const changes = this.#changes;
    const queue = new Queue({
      ...shared,
      dispatcher,
      changes,
      recent: this.#recent,
      graceMs,
      newId,
    });
    return { name, dispatcher, queue };
  }

  #workerOptions(service: WorkerOptions["service"]): WorkerOptions {
    const { graceMs, readyTimeoutMs, log } = this.#options;
    const scratchFolder = this.#scratch.create();
    return {
      service,
      scratchFolder,
      permissions: [
        ...workerPermissions({ servicePath: service.servicePath }),
        `--allow-fs-read=${scratchFolder}`,
        `--allow-fs-write=${scratchFolder}`,
      ],
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
    for (const { name } of this.#manifest?.endpoints ?? []) {
      this.#opened?.dispatcher.slotFree(name);
    }
    this.calls.slotFree();
  }

  #onRescued(tasks: readonly Task[]): void {
    for (const task of tasks) {
      this.#changes.publish(task.taskId, task);
      if (task.status === "queued") {
        this.#opened?.dispatcher.hint(task.endpoint);
      }
    }
  }
}

function starting(): never {
  throw problem("NO_WORKER", "the deployment is starting: try again", { retryAfterMs: 1_000 });
}
