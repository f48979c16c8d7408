/**
 * A worker that is a process on this machine: it loads the service, runs calls, is
 * watched, and is killed when necessary. A crash, `process.exit`, lack of memory or an
 * endless loop in user code affects this worker only.
 */
import type { EndpointManifest, MountManifest, ServiceManifest } from "../protocol/manifest.ts";
import {
  MAX_HEADER_BYTES,
  MAX_MANIFEST_BYTES,
  PROTOCOL_VERSION,
  type ServiceEntry,
  type WorkerMessage,
} from "../protocol/messages.ts";
import { resultIsText } from "../service/schema.ts";
import {
  Capacity,
  type ExecuteOptions,
  type Execution,
  type ExecutionListener,
} from "./calls/execution.ts";
import { MAX_LAST_ANSWER_MS, type MountAgent } from "./calls/mount-agents.ts";
import { MountSockets } from "./calls/mount-sockets.ts";
import { FileTransfers, type TransferHost } from "./calls/transfers.ts";
import { WorkerCalls } from "./calls/worker-calls.ts";
import { type ExposedSource, Exposition } from "./exposition/exposition.ts";
import { Scraper } from "./exposition/scrape.ts";
import { GpuTime } from "./gpus/gpu-time.ts";
import { notReadyAfter } from "./limits.ts";
import { ServiceProcess, WorkerHeartbeat } from "./process.ts";
import type { WorkerUsage } from "./usage.ts";
import type { Worker } from "./worker.ts";
import type { WorkerEnd } from "./worker-end.ts";
import type { Awaited, CountsReceiver, ServiceCode, WorkerOptions } from "./worker-options.ts";

/**
 * Largest message of a worker: a manifest with its header. A worker sends results in messages
 * of less, and a large result comes on disk.
 */
const MAX_WORKER_MESSAGE_BYTES = MAX_MANIFEST_BYTES + 2 * MAX_HEADER_BYTES;

/** How long a worker that has refused its service has to write why and exit. */
const REFUSED_WORKER_EXIT_MS = 1_000;
/** Interval at which a worker that is not ready yet says so in its log. */
const LOADING_NOTICE_INTERVAL_MS = 10_000;
/** How long a worker may say while it serves that it is not ready; then another takes its place. */
const MAX_UNREADY_MS = 300_000;
/** Interval at which it is looked whether such a worker has no calls left. */
const READINESS_LOOK_MS = 1_000;
/** Pause after which others follow what a worker says of itself. */
const READINESS_TELL_MS = 100;

type MetricsMessage = Extract<WorkerMessage, { readonly type: "metrics" }>;

export class LocalWorker implements Worker {
  readonly id: string;
  readonly capacity = new Capacity();
  readonly gpuTime: GpuTime | undefined;
  readonly machine = undefined;
  readonly lease = {};
  readonly isParted = false;
  readonly fault = undefined;
  readonly #options: WorkerOptions;
  readonly #awaited: Awaited["endpoints"] | undefined;
  readonly #process: ServiceProcess;
  readonly #executions: WorkerCalls;
  readonly #heartbeat: WorkerHeartbeat;
  readonly #loaded = Promise.withResolvers<ServiceManifest>();
  #manifest: ServiceManifest | undefined;
  /** What the service says of itself while it is loaded and not ready. */
  #unready: string | undefined;
  readonly #onAnswering: () => void;
  #telling: NodeJS.Timeout | undefined;
  #givingUp: NodeJS.Timeout | undefined;
  #counts: CountsReceiver | undefined;
  readonly #exposition: Exposition;
  /** What the libraries in the process of the service expose; undefined where none does. */
  #libraries: ExposedSource | undefined;
  /** Undefined without mounted servers. */
  #mounts: MountSockets | undefined;
  #servedMount = false;
  /** Of the mounted servers that expose metrics. */
  #scrapers: readonly Scraper[] = [];
  #isFinishing = false;
  /** True when the node kills the process because of one execution or of its own shutdown. */
  #sacrificed = false;
  #stopping = false;
  #leaving: NodeJS.Timeout | undefined;

  /** `onAnswering` is called when `isBlocked` or `isDraining` has changed. */
  constructor(id: string, options: WorkerOptions, onAnswering: () => void) {
    this.id = id;
    this.#options = options;
    this.#onAnswering = onAnswering;
    const { gpus = [] } = options;
    const had = gpus.reduce((sum, { share }) => sum + (share?.part ?? 1), 0);
    this.gpuTime = had > 0 ? new GpuTime(had) : undefined;
    this.#awaited = options.service.revision?.awaits?.endpoints;
    this.#heartbeat = new WorkerHeartbeat({
      isBusy: () => this.busyness > 0,
      ping: () => this.#process.send({ type: "ping", sequence: this.#executions.begun }),
      onChange: () => {
        this.#executions.answering();
        onAnswering();
      },
    });
    this.#exposition = new Exposition({
      onChanges: (exposed) => this.#countExposed({ exposed }),
      onUnread: () => this.#countExposed({ unread: 1 }),
      onLine: (line) => {
        if (this.#process.admitLine(line.length)) {
          options.onOutput(line, "node");
        }
      },
    });
    const { graceMs } = options;
    const transfers = (host: TransferHost) => new FileTransfers(options, host);
    this.#executions = new WorkerCalls(
      { graceMs, transfers, mounts: options },
      {
        hasEnded: () => this.ended,
        send: (message) => this.#process.send(message),
        sacrifice: (message) => this.#sacrifice(message),
        isBlocked: () => this.#heartbeat.blocked,
        onDraining: onAnswering,
        watch: () => this.#process.watch,
      },
    );
    this.#process = new ServiceProcess({
      ...options,
      maxMessageBytes: MAX_WORKER_MESSAGE_BYTES,
      onMessage: (message) => this.#receive(message),
    });
    if (this.#process.pid !== undefined) {
      try {
        options.onSpawn(this.#process.pid);
      } catch (err) {
        // Nobody else would ever end it.
        this.#process.kill("it could not be recorded");
        throw err;
      }
    }
    void this.exited.then((end) => this.#lost(end));
  }

  get revision(): number | undefined {
    return this.#options.service.revision?.number;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  usage(): WorkerUsage {
    return this.#process.usage();
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  get ended(): boolean {
    return this.#process.ended;
  }

  get exited(): Promise<WorkerEnd> {
    return this.#process.exited;
  }

  get outputEnded(): Promise<void> {
    return this.#process.outputEnded;
  }

  get isBlocked(): boolean {
    return this.#heartbeat.blocked || (this.loaded && this.#unready !== undefined);
  }

  get isSlow(): boolean {
    return this.#heartbeat.slow;
  }

  get isDraining(): boolean {
    return this.#executions.isDraining;
  }

  get loaded(): boolean {
    return this.#manifest !== undefined && !this.#stopping && !this.ended;
  }

  get used(): boolean {
    return this.#executions.begun > 0 || this.#servedMount;
  }

  get busyness(): number {
    const { size } = this.#executions;
    // Requests of tasks are both calls and connections.
    return this.#mounts === undefined
      ? size
      : size + this.capacity.mounted - this.#executions.requests;
  }

  async load(): Promise<ServiceManifest> {
    const { readyTimeoutMs, scratchFolder, maxResultBytes, maxFileBytes } = this.#options;
    const { servicePath, code } = this.#options.service;
    const startedAtMs = performance.now();
    const notice = setInterval(() => {
      const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
      const text = `worker ${this.id} loads the service for ${seconds} s now, and may take ${readyTimeoutMs / 1_000} s`;
      const said = this.#unready === undefined ? "" : `: ${this.#unready}`;
      this.#options.onOutput(text + said, "node");
    }, LOADING_NOTICE_INTERVAL_MS);
    const timer = setTimeout(() => {
      const message = notReadyAfter(readyTimeoutMs, this.#unready);
      this.#loaded.reject(new Error(message));
      this.kill(message);
    }, readyTimeoutMs);
    try {
      const sent = await codeToSend(code);
      const load = { servicePath, code: sent, scratchFolder, maxResultBytes, maxFileBytes };
      const isolated = this.#options.limits !== undefined;
      this.#process.send({ type: "load", ...load, isolated });
      return await this.#loaded.promise;
    } finally {
      clearTimeout(timer);
      clearInterval(notice);
    }
  }

  runs({ name }: Pick<EndpointManifest, "name">): boolean {
    return this.#awaited?.has(name) !== true;
  }

  freeSlots(endpoint: EndpointManifest): number {
    const isHeldUp = this.isBlocked || this.isDraining;
    const takes = this.loaded && !isHeldUp && this.runs(endpoint);
    return takes ? this.capacity.free(endpoint) : 0;
  }

  release(endpoint: EndpointManifest): void {
    this.capacity.giveBack(endpoint);
    this.#finishWhenIdle();
  }

  execute(call: ExecuteOptions, listener: ExecutionListener): Execution {
    const execution = this.#executions.begin(call, listener);
    this.#heartbeat.wake();
    return execution;
  }

  agentOf(mount: string): MountAgent | undefined {
    this.#servedMount = true;
    this.#heartbeat.wake();
    return this.#mounts?.agentOf(mount);
  }

  retire(): void {
    if (this.#mounts !== undefined) {
      this.#process.send({ type: "retire" });
    }
  }

  discard(message: string): void {
    if (this.#leaving === undefined) {
      this.kill(message);
    }
  }

  kill(message: string, cause?: "gpu_memory"): void {
    this.#process.kill(message, cause);
  }

  async stop(withinMs?: number): Promise<void> {
    this.#stopping = true;
    this.retire();
    this.#finishWhenIdle();
    if (withinMs === undefined) {
      // Calls and tasks have their own timeouts, and what a server has begun to answer has none.
      const cutOff = setInterval(() => {
        if (this.#executions.requests === 0) {
          this.#mounts?.[Symbol.dispose]();
        }
      }, MAX_LAST_ANSWER_MS);
      await this.exited;
      clearInterval(cutOff);
      return;
    }
    const abort = setTimeout(
      () => this.#executions.abortAll("shutdown"),
      Math.max(0, withinMs - this.#options.graceMs),
    );
    const kill = setTimeout(() => this.#sacrifice("it did not stop"), withinMs);
    await this.exited;
    clearTimeout(abort);
    clearTimeout(kill);
  }

  /** Waits for all slots, not only for calls: a reserved slot may still become a call. */
  #finishWhenIdle(): void {
    if (!this.#stopping || !this.capacity.idle || this.#isFinishing) {
      return;
    }
    this.#isFinishing = true;
    if (this.#scrapers.length === 0) {
      this.#process.send({ type: "stop" });
      return;
    }
    // What they have counted since the last time is gone with the worker.
    void Promise.all(this.#scrapers.map((scraper) => scraper.finish())).then(() =>
      this.#process.send({ type: "stop" }),
    );
  }

  /** Kills the process because of one execution; its other executions end as displaced. */
  #sacrifice(message: string): void {
    this.#sacrificed = true;
    this.#process.kill(message, "unresponsive");
  }

  #receive(message: WorkerMessage): void {
    switch (message.type) {
      case "hello":
        this.#greet(message);
        break;
      case "ready":
        this.#ready(message.manifest);
        break;
      case "readiness":
        this.#hear(message.said);
        break;
      case "refused":
        if (this.#manifest !== undefined) {
          this.#process.explain(message.message);
        }
        this.#loaded.reject(new Error(message.message));
        this.#leave();
        break;
      case "results":
        this.#each(message.results, (result) => this.#executions.finish(result));
        break;
      case "chunks":
        this.#each(message.chunks, (chunk) => this.#executions.chunk(chunk));
        break;
      case "progress":
        this.#executions.get(message.id)?.progress(message.fraction, message.message);
        break;
      case "usage":
        this.#executions.get(message.id)?.usage(message.units);
        break;
      case "log":
        this.#log(message);
        break;
      case "metrics":
        this.#count(message);
        break;
      case "exposition":
        if (this.#manifest !== undefined) {
          this.#libraries ??= this.#exposition.source("its libraries");
          this.#libraries.take(message.text);
        }
        break;
      case "pong":
        this.#heartbeat.pong();
        break;
    }
  }

  #greet({ protocols, host }: Extract<WorkerMessage, { readonly type: "hello" }>): void {
    if (!protocols.includes(PROTOCOL_VERSION)) {
      this.#process.refuse(
        `${host} speaks version ${protocols.join(", ")} of the host protocol, and this node version ${PROTOCOL_VERSION}: install the version that belongs to it`,
      );
    }
  }

  /** Takes each of what came together, up to one that is forged. */
  #each<One>(all: readonly One[], take: (one: One) => string | undefined): void {
    for (const one of all) {
      const fault = take(one);
      if (fault !== undefined) {
        this.#process.refuse(fault);
        return;
      }
    }
  }

  #log({ id, ...line }: Extract<WorkerMessage, { readonly type: "log" }>): void {
    const length = line.message.length + (line.fieldsJson?.length ?? 0);
    const execution = this.#executions.get(id);
    if (this.#process.admitLine(length)) {
      execution?.log(line);
    } else {
      execution?.skipLine(line);
    }
  }

  #count(message: MetricsMessage): void {
    const fault = this.#counts?.take(message);
    if (fault !== undefined) {
      this.#process.refuse(fault);
    }
  }

  #countExposed(changes: Pick<MetricsMessage, "exposed" | "unread">): void {
    this.#counts?.take({ type: "metrics", changes: [], dropped: [], ...changes });
  }

  #ready(manifest: ServiceManifest): void {
    if (this.#manifest !== undefined) {
      this.#process.refuse("it said twice that it was ready");
      return;
    }
    this.#manifest = manifest;
    this.#unready = undefined;
    this.#counts = this.ended ? undefined : this.#options.countsOf?.(manifest);
    const endpoints = manifest.endpoints.filter(resultIsText).map(({ name }) => name);
    this.#process.send({ type: "text_results", endpoints });
    if (manifest.mounts !== undefined && !this.ended) {
      this.#mounts = new MountSockets({
        mounts: manifest.mounts,
        scratchFolder: this.#options.scratchFolder,
        connect: (mount) => this.#process.send({ type: "connect", mount }),
        onFault: ({ message }) => this.kill(`its mounted servers cannot be reached: ${message}`),
      });
      this.#scrapers = this.#scrape(manifest.mounts, this.#mounts);
    }
    this.#heartbeat.start();
    this.#loaded.resolve(manifest);
  }

  /** Reads the metrics of the mounted servers that expose some. */
  #scrape(mounts: readonly MountManifest[], sockets: MountSockets): Scraper[] {
    return mounts.flatMap(({ path: mount, metrics }) => {
      const agent = sockets.agentOf(mount);
      if (metrics === undefined || agent === undefined) {
        return [];
      }
      const path = mount === "/" ? metrics : mount + metrics;
      const source = this.#exposition.source(`the server at ${mount}`);
      const scraper = new Scraper({ agent, path, source });
      scraper.start();
      return scraper;
    });
  }

  /** The service says that it is not ready, or that it is again, by an empty text. */
  #hear(said: string): void {
    const wasReady = this.#unready === undefined;
    this.#unready = said === "" ? undefined : said;
    if (this.#manifest === undefined || wasReady === (said === "")) {
      return;
    }
    const text = said === "" ? "is ready again" : `gets no calls: ${said}`;
    if (this.#process.admitLine(text.length)) {
      this.#options.onOutput(`worker ${this.id} ${text}`, "node");
    }
    // However often it changes its mind, others are asked to follow a few times a second.
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined;
      this.#onAnswering();
    }, READINESS_TELL_MS);
    clearTimeout(this.#givingUp);
    this.#givingUp = said === "" ? undefined : setTimeout(() => this.#giveUp(), MAX_UNREADY_MS);
  }

  /** Replaces a worker that has not been ready for long, once no call is left in it. */
  #giveUp(): void {
    if (this.capacity.idle) {
      this.kill(`it was not ready for ${MAX_UNREADY_MS / 60_000} min: ${this.#unready}`);
    } else {
      this.#givingUp = setTimeout(() => this.#giveUp(), READINESS_LOOK_MS);
    }
  }

  /** Gives the worker time to write its reason and exit by itself. */
  #leave(): void {
    if (this.#leaving === undefined) {
      this.#leaving = setTimeout(
        () => this.kill("it did not go by itself"),
        REFUSED_WORKER_EXIT_MS,
      );
      void this.exited.then(() => clearTimeout(this.#leaving));
    }
  }

  #lost(end: WorkerEnd): void {
    const { message } = end;
    this.#heartbeat[Symbol.dispose]();
    clearTimeout(this.#telling);
    clearTimeout(this.#givingUp);
    for (const scraper of this.#scrapers) {
      scraper[Symbol.dispose]();
    }
    this.#exposition[Symbol.dispose]();
    this.#counts?.end();
    this.#mounts?.[Symbol.dispose]();
    this.#loaded.promise.catch(() => {
      // Handled here, because `load` may not be waiting any more.
    });
    this.#loaded.reject(new Error(`the worker ended while it loaded the service: ${message}`));
    if (this.#sacrificed) {
      this.#executions.endAll((execution) => execution.displace(message));
    } else {
      this.#executions.loseAll(end);
    }
  }
}

/** The code of a service, or what a host in Python is told; how that starts is known to the launch. */
async function codeToSend(code: ServiceCode["code"]): Promise<string | ServiceEntry> {
  if (typeof code !== "object") {
    return typeof code === "function" ? await code() : code;
  }
  await code.verify?.();
  const { module, name, folder } = code;
  return {
    module,
    ...(name !== undefined && { name }),
    ...(folder !== undefined && { folder }),
  };
}
