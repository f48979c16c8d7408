/**
 * One worker as the node sees it: it loads the service, runs calls, is watched,
 * and is killed when necessary. A crash, `process.exit`, lack of memory or an
 * endless loop in user code affects this worker only.
 */
import { SlotMap } from "../collections/slots.ts";
import type { WorkerEnd } from "../metrics/deployment.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import {
  type AbortReason,
  type CallResult,
  isAtHand,
  MAX_HEADER_BYTES,
  MAX_MANIFEST_BYTES,
  packPayload,
  type SentPayload,
  unpackPayload,
  type WorkerMessage,
} from "../protocol/messages.ts";
import { resultIsText } from "../service/schema.ts";
import { Deadlines } from "../time/deadlines.ts";
import { Execution, type ExecutionHost, type ExecutionListener } from "./execution.ts";
import { WorkerHeartbeat } from "./heartbeat.ts";
import type { CountsReceiver, ExecuteOptions, WorkerOptions } from "./options.ts";
import { CallOutbox, ServiceProcess } from "./process.ts";
import { Capacity } from "./slot.ts";
import { FileTransfers } from "./transfers.ts";

/**
 * Largest message of a worker: a manifest with its header. A worker sends results in messages
 * of less, and a large result comes on disk.
 */
const MAX_WORKER_MESSAGE_BYTES = MAX_MANIFEST_BYTES + 2 * MAX_HEADER_BYTES;

/** How long a worker that has refused its service has to write why and exit. */
const REFUSED_WORKER_EXIT_MS = 1_000;

export class WorkerProcess implements ExecutionHost {
  /** The id of the worker and of the lease of its attempts. */
  readonly id: string;
  readonly capacity = new Capacity();
  readonly #options: WorkerOptions;
  readonly #process: ServiceProcess;
  readonly #executions = new SlotMap<number, Execution>();
  readonly #deadlines = new Deadlines((nowMs) => this.#look(nowMs));
  readonly #transfers: FileTransfers;
  readonly #heartbeat: WorkerHeartbeat;
  readonly #loaded = Promise.withResolvers<ServiceManifest>();
  #manifest: ServiceManifest | undefined;
  #counts: CountsReceiver | undefined;
  #nextCallId = 1;
  readonly #outbox = new CallOutbox((calls) => this.#process.send({ type: "calls", calls }));
  /** True when the node kills the process because of one execution or of its own shutdown. */
  #sacrificed = false;
  #stopping = false;
  #leaving: NodeJS.Timeout | undefined;

  /** `onUnblocked` is called when the worker answers again after its event loop was blocked. */
  constructor(id: string, options: WorkerOptions, onUnblocked: () => void) {
    this.id = id;
    this.#options = options;
    this.#heartbeat = new WorkerHeartbeat({
      isBusy: () => this.#executions.size > 0,
      ping: () => this.#process.send({ type: "ping", sequence: this.#nextCallId }),
      onUnblocked,
    });
    this.#transfers = new FileTransfers(options, {
      settle: (callId) => this.#settle(callId),
      isUnderWay: (callId) => this.#executions.has(callId),
    });
    this.#process = new ServiceProcess({
      ...options,
      maxMessageBytes: MAX_WORKER_MESSAGE_BYTES,
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

  /** The revision of its service; undefined where services have none. */
  get revision(): number | undefined {
    return this.#options.service.revision?.number;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get lastCpuMs(): number {
    return this.#process.lastCpuMs;
  }

  /** True when it was told to finish. */
  get stopping(): boolean {
    return this.#stopping;
  }

  get ended(): boolean {
    return this.#process.ended;
  }

  /** Resolves with the reason when the process has ended. */
  get exited(): Promise<string> {
    return this.#process.exited;
  }

  /** The cause of an unexpected end, for metrics; `reason` is the value of `exited`. */
  causeOf(reason: string): WorkerEnd {
    if (reason.startsWith("out of memory")) {
      return "memory";
    }
    if (this.#sacrificed) {
      return "unresponsive";
    }
    return this.#process.killed ? "killed" : "crashed";
  }

  /** Resolves when the process has ended and all of its output was read. */
  get outputEnded(): Promise<void> {
    return this.#process.outputEnded;
  }

  /** False while it loads or stops, and after it has ended. */
  get loaded(): boolean {
    return this.#manifest !== undefined && !this.#stopping && !this.ended;
  }

  /** True after its first call, which shows that its service loads and starts. */
  get used(): boolean {
    return this.#nextCallId > 1;
  }

  /** The number of calls under way. */
  get busyness(): number {
    return this.#executions.size;
  }

  /** Loads the service. Rejects with one message that says what is wrong. */
  async load(): Promise<ServiceManifest> {
    const { readyTimeoutMs, scratchFolder, maxResultBytes, maxFileBytes } = this.#options;
    const { servicePath, code } = this.#options.service;
    const timer = setTimeout(() => {
      const seconds = readyTimeoutMs / 1000;
      const message = `the service was not ready after ${seconds} s; does it wait for something at import?`;
      this.#loaded.reject(new Error(message));
      this.kill(message);
    }, readyTimeoutMs);
    const load = { servicePath, code, scratchFolder, maxResultBytes, maxFileBytes };
    const isolated = this.#options.limits !== undefined;
    this.#process.send({ type: "load", ...load, isolated });
    try {
      return await this.#loaded.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The number of calls of the endpoint that it can take now; 0 while blocked or not loaded. */
  freeSlots(endpoint: EndpointManifest): number {
    return this.loaded && !this.#heartbeat.blocked ? this.capacity.free(endpoint) : 0;
  }

  /** Releases a slot that was taken from `capacity`. */
  release(endpoint: EndpointManifest): void {
    this.capacity.giveBack(endpoint);
    this.#finishWhenIdle();
  }

  /** Begins a call; the listener's `onEnd` is called exactly once. */
  execute(call: ExecuteOptions, listener: ExecutionListener): Execution {
    const id = this.#nextCallId++;
    const { endpoint, kind, timeoutMs, arguments: payload } = call;
    const execution = new Execution({ id, endpoint, kind }, listener, {
      host: this,
      graceMs: this.#options.graceMs,
      timeoutMs,
    });
    this.#executions.set(id, execution);
    if (this.ended) {
      setImmediate(() => this.#settle(id)?.displace("the worker had ended before it began"));
    } else if (isAtHand(payload)) {
      this.#post(id, call, payload);
    } else {
      void this.#transfers.stage(execution, payload, (sent) => {
        execution.resume(timeoutMs);
        this.#post(id, call, sent);
      });
    }
    return execution;
  }

  sendAbort(id: number, reason: AbortReason): void {
    if (this.#transfers.holds(id, reason)) {
      this.#settle(id)?.displace("its files were on their way");
      return;
    }
    this.#outbox.flush();
    this.#process.send({ type: "abort", id, reason });
  }

  expect(deadlineMs: number): void {
    // A call that begins in a worker that has ended is displaced at once.
    if (!this.ended) {
      this.#deadlines.expect(deadlineMs);
    }
  }

  /** Kills the process because of one execution; its other executions end as displaced. */
  sacrifice(message: string): void {
    this.#sacrificed = true;
    this.kill(message);
  }

  /** Kills a worker that cannot be used, unless it is about to exit by itself. */
  discard(message: string): void {
    if (this.#leaving === undefined) {
      this.kill(message);
    }
  }

  kill(message: string): void {
    this.#process.kill(message);
  }

  /**
   * Takes no more calls, lets the running ones finish, and ends the process.
   * With `withinMs`, calls are aborted a grace period before that time, and the
   * process is killed at that time; without, their own timeouts are the limit.
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

  /** Waits for all slots, not only for calls: a reserved slot may still become a call. */
  #finishWhenIdle(): void {
    if (this.#stopping && this.capacity.idle) {
      this.#process.send({ type: "stop" });
    }
  }

  #look(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const execution of this.#executions.values()) {
      nextMs = Math.min(nextMs, execution.look(nowMs));
    }
    return nextMs;
  }

  #receive(message: WorkerMessage): void {
    switch (message.type) {
      case "ready":
        this.#ready(message.manifest);
        break;
      case "refused":
        this.#loaded.reject(new Error(message.message));
        this.#leave();
        break;
      case "results":
        for (const result of message.results) {
          if (!this.#isExpected(result.id)) {
            this.#process.refuse(`it sent a result of call ${result.id}, which is not under way`);
            break;
          }
          this.#finish(result);
        }
        break;
      case "progress":
        this.#executions.get(message.id)?.progress(message.fraction, message.message);
        break;
      case "log":
        if (this.#process.admitLine(message.message.length)) {
          this.#executions.get(message.id)?.log(message);
        }
        break;
      case "metrics":
        this.#count(message);
        break;
      case "pong":
        this.#heartbeat.pong();
        break;
    }
  }

  #count(message: Extract<WorkerMessage, { readonly type: "metrics" }>): void {
    const fault = this.#counts?.take(message);
    if (fault !== undefined) {
      this.#process.refuse(fault);
    }
  }

  #ready(manifest: ServiceManifest): void {
    if (this.#manifest !== undefined) {
      this.#process.refuse("it said twice that it was ready");
      return;
    }
    this.#manifest = manifest;
    this.#counts = this.ended ? undefined : this.#options.countsOf?.(manifest);
    const endpoints = manifest.endpoints.filter(resultIsText).map(({ name }) => name);
    this.#process.send({ type: "text_results", endpoints });
    this.#heartbeat.start();
    this.#loaded.resolve(manifest);
  }

  #post(id: number, call: ExecuteOptions, payload: SentPayload): void {
    const { endpoint, taskId, attempt, trace, timeoutMs } = call;
    const deadlineMs = Date.now() + timeoutMs;
    const sent = { id, endpoint, taskId, attempt, arguments: packPayload(payload), deadlineMs };
    this.#outbox.post(trace === undefined ? sent : { ...sent, trace });
  }

  /** An honest worker ends each call exactly once, so the end of any other call means that it is forged. */
  #isExpected(id: number): boolean {
    return this.#executions.has(id) && !this.#transfers.isCollecting(id);
  }

  #finish(ended: CallResult): void {
    if ("failure" in ended) {
      this.#settle(ended.id)?.fail(ended.failure);
      return;
    }
    const result = unpackPayload(ended.result);
    if (isAtHand(result)) {
      this.#settle(ended.id)?.succeed(result);
    } else {
      void this.#transfers.collect(this.#executions.get(ended.id), result);
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

  #lost(reason: string): void {
    this.#heartbeat[Symbol.dispose]();
    this.#deadlines.clear();
    this.#counts?.end();
    this.#loaded.promise.catch(() => {
      // Handled here, because `load` may not be waiting any more.
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

  /** Removes an execution from those under way, and its files. */
  #settle(id: number): Execution | undefined {
    const execution = this.#executions.take(id);
    this.#transfers.ended(id);
    return execution;
  }
}
