/**
 * One worker as the node sees it: loads the service, takes calls, is watched,
 * and killed when it must be. A crash, `process.exit`, out-of-memory or
 * endless loop in user code ends here.
 */
import type { EndpointManifest, ServiceManifest } from "../../sdk/manifest.ts";
import type { AbortReason, Call, WorkerMessage } from "../../sdk/protocol.ts";
import { Capacity } from "./capacity.ts";
import { Execution, type ExecutionHost, type ExecutionListener } from "./execution.ts";
import { ServiceProcess } from "./process.ts";

/** A worker that answers no ping for so long gets no new calls while others do. */
const UNRESPONSIVE_MS = 2_000;
const PING_EVERY_MS = 1_000;

/** What a message holds besides the results in it. */
const MESSAGE_OVERHEAD_BYTES = 1024 * 1024;

export interface WorkerOptions {
  /** The service's bundled code and where its source is. */
  readonly service: { readonly servicePath: string; readonly code: string };
  /** Flags of Node's permission model. */
  readonly permissions: readonly string[];
  /** A folder of its own that it may write. */
  readonly scratchFolder: string;
  /** Its environment besides what every worker has. */
  readonly env: { readonly [name: string]: string };
  readonly maxResultBytes: number;
  /** Between an abort and the kill. */
  readonly graceMs: number;
  /** How long loading the service may take. */
  readonly readyTimeoutMs: number;
  /** The process exists, with this number. */
  onSpawn(pid: number): void;
  /** A line that the service wrote to stdout or stderr. */
  onOutput(line: string): void;
}

export interface CallOptions extends Omit<Call, "id" | "deadlineMs"> {
  readonly timeoutMs: number;
}

export class WorkerProcess implements ExecutionHost {
  /** Identifies the worker; the lease of its attempts has the same id. */
  readonly id: string;
  readonly capacity = new Capacity();
  readonly #options: WorkerOptions;
  readonly #process: ServiceProcess;
  readonly #executions = new Map<number, Execution>();
  readonly #onUnblocked: () => void;
  readonly #loaded = Promise.withResolvers<ServiceManifest>();
  #manifest: ServiceManifest | undefined;
  #nextCallId = 1;
  #outbox: Call[] = [];
  #pings: NodeJS.Timeout | undefined;
  #unansweredSinceMs: number | undefined;
  /** The node ends the process for the sake of one execution, or of its own. */
  #sacrificed = false;
  #stopping = false;

  /** `onUnblocked` is called when it answers again after its event loop was blocked. */
  constructor(id: string, options: WorkerOptions, onUnblocked: () => void) {
    this.id = id;
    this.#options = options;
    this.#onUnblocked = onUnblocked;
    this.#process = new ServiceProcess({
      ...options,
      maxMessageBytes: options.maxResultBytes + MESSAGE_OVERHEAD_BYTES,
      onMessage: (message) => this.#receive(message),
    });
    if (this.#process.pid !== undefined) {
      options.onSpawn(this.#process.pid);
    }
    void this.exited.then((reason) => this.#lost(reason));
  }

  get scratchFolder(): string {
    return this.#options.scratchFolder;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** It was told to finish. */
  get stopping(): boolean {
    return this.#stopping;
  }

  get ended(): boolean {
    return this.#process.ended;
  }

  /** Resolves, with the reason, when the process has ended. */
  get exited(): Promise<string> {
    return this.#process.exited;
  }

  /** False while it is loading or stopping, and when it has ended. */
  get loaded(): boolean {
    return this.#manifest !== undefined && !this.#stopping && !this.ended;
  }

  /** It has been given a call, which says that its service can be loaded and starts. */
  get used(): boolean {
    return this.#nextCallId > 1;
  }

  /** Calls under way: the fewer, the sooner it is at the next one. */
  get busyness(): number {
    return this.#executions.size;
  }

  /** Loads the service. Rejects with one message that names the fault. */
  async load(): Promise<ServiceManifest> {
    const { readyTimeoutMs, service, maxResultBytes } = this.#options;
    const timer = setTimeout(() => {
      const seconds = readyTimeoutMs / 1000;
      this.#refuse(
        `the service was not ready after ${seconds} s; does it wait for something at import?`,
      );
    }, readyTimeoutMs);
    this.#process.send({ type: "load", ...service, maxResultBytes });
    try {
      return await this.#loaded.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** How many more calls of the endpoint it can take now. */
  freeSlots(endpoint: EndpointManifest): number {
    return this.loaded && !this.#blocked ? this.capacity.free(endpoint) : 0;
  }

  /** Gives a slot back that was taken from `capacity`. */
  release(endpoint: EndpointManifest): void {
    this.capacity.giveBack(endpoint);
    this.#finishWhenIdle();
  }

  /** Begins a call; its listener hears of its end exactly once. */
  execute({ timeoutMs, ...call }: CallOptions, listener: ExecutionListener): Execution {
    const id = this.#nextCallId++;
    const execution = new Execution({ ...call, id, deadlineMs: Date.now() + timeoutMs }, listener, {
      host: this,
      graceMs: this.#options.graceMs,
      timeoutMs,
    });
    this.#executions.set(id, execution);
    if (this.ended) {
      setImmediate(() => this.#settle(id)?.displace("the worker had ended before it began"));
    } else if (this.#outbox.push(execution.call) === 1) {
      setImmediate(() => this.#flush());
    }
    return execution;
  }

  sendAbort(id: number, reason: AbortReason): void {
    this.#flush();
    this.#process.send({ type: "abort", id, reason });
  }

  /** Ends the process for the sake of one execution; what else runs in it is not to blame. */
  sacrifice(message: string): void {
    this.#sacrificed = true;
    this.kill(message);
  }

  kill(message: string): void {
    this.#process.kill(message);
  }

  /**
   * Takes no more calls, lets those under way finish, and ends the process.
   * With `withinMs`, calls are aborted in time to end with their grace, and
   * the process is killed then; without, their own timeouts are the limit.
   */
  async stop(withinMs?: number): Promise<void> {
    this.#stopping = true;
    this.#finishWhenIdle();
    if (withinMs === undefined) {
      await this.exited;
      return;
    }
    const abort = setTimeout(
      () => {
        for (const execution of this.#executions.values()) {
          execution.abort("shutdown");
        }
      },
      Math.max(0, withinMs - this.#options.graceMs),
    );
    const kill = setTimeout(() => this.sacrifice("it did not stop"), withinMs);
    await this.exited;
    clearTimeout(abort);
    clearTimeout(kill);
  }

  /** Slots that are reserved may still become calls, so the process is not told to go before. */
  #finishWhenIdle(): void {
    if (this.#stopping && this.capacity.idle) {
      this.#process.send({ type: "stop" });
    }
  }

  #receive(message: WorkerMessage): void {
    switch (message.type) {
      case "ready":
        this.#manifest = message.manifest;
        this.#pings ??= setInterval(() => this.#ping(), PING_EVERY_MS);
        this.#loaded.resolve(message.manifest);
        break;
      case "refused":
        this.#refuse(message.message);
        break;
      case "results":
        for (const result of message.results) {
          this.#settle(result.id)?.finish(result);
        }
        break;
      case "progress":
        this.#executions.get(message.id)?.progress(message.fraction, message.message);
        break;
      case "log":
        this.#executions.get(message.id)?.log(message);
        break;
      case "pong": {
        const wasBlocked = this.#blocked;
        this.#unansweredSinceMs = undefined;
        if (wasBlocked) {
          this.#onUnblocked();
        }
        break;
      }
    }
  }

  #refuse(message: string): void {
    this.#loaded.reject(new Error(message));
    this.kill(message);
  }

  get #blocked(): boolean {
    return (
      this.#unansweredSinceMs !== undefined &&
      Date.now() - this.#unansweredSinceMs > UNRESPONSIVE_MS
    );
  }

  #ping(): void {
    if (this.#executions.size > 0 && this.#unansweredSinceMs === undefined) {
      this.#unansweredSinceMs = Date.now();
      this.#process.send({ type: "ping", sequence: this.#nextCallId });
    }
  }

  #flush(): void {
    if (this.#outbox.length > 0) {
      const calls = this.#outbox;
      this.#outbox = [];
      this.#process.send({ type: "calls", calls });
    }
  }

  #lost(reason: string): void {
    clearInterval(this.#pings);
    this.#loaded.promise.catch(() => {
      // Nobody may be loading it any more.
    });
    this.#loaded.reject(new Error(`the worker ended while it loaded the service: ${reason}`));
    for (const id of [...this.#executions.keys()]) {
      const execution = this.#settle(id);
      if (this.#sacrificed) {
        execution?.displace(reason);
      } else {
        execution?.lose(reason);
      }
    }
  }

  /** Takes an execution out of those under way. */
  #settle(id: number): Execution | undefined {
    const execution = this.#executions.get(id);
    this.#executions.delete(id);
    return execution;
  }
}
