/**
 * One worker process as the node sees it: spawned with the permission model,
 * an empty environment and a scratch folder, spoken to over IPC, watched, and
 * killed when it must be. A crash, `process.exit`, out-of-memory or endless
 * loop in user code ends here.
 */
import { type ChildProcess, fork } from "node:child_process";
import { extname } from "node:path";
import type { EndpointManifest, ServiceManifest } from "../../sdk/manifest.ts";
import type { AbortReason, Call, NodeMessage, WorkerMessage } from "../../sdk/protocol.ts";
import { Execution, type ExecutionHost, type ExecutionListener } from "./execution.ts";
import { forEachLine } from "./lines.ts";

const HOST = new URL(`../../sdk/host/main${extname(import.meta.url)}`, import.meta.url);

/** A worker that answers no ping for so long gets no new calls while others do. */
const UNRESPONSIVE_MS = 2_000;
const PING_EVERY_MS = 1_000;

export interface WorkerOptions {
  /** The service's bundled code and where its source is. */
  readonly service: { readonly servicePath: string; readonly code: string };
  /** Flags of Node's permission model. */
  readonly permissions: readonly string[];
  /** A folder of its own that it may write. */
  readonly scratchFolder: string;
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
  readonly #options: WorkerOptions;
  readonly #process: ChildProcess;
  readonly #executions = new Map<number, Execution>();
  readonly #running = new Map<string, number>();
  readonly #exited = Promise.withResolvers<string>();
  #manifest: ServiceManifest | undefined;
  #nextCallId = 1;
  #outbox: Call[] = [];
  #pings: NodeJS.Timeout | undefined;
  #unansweredSinceMs: number | undefined;
  #endedFor: string | undefined;
  #stopping = false;

  constructor(id: string, options: WorkerOptions) {
    this.id = id;
    this.#options = options;
    this.#process = fork(HOST, {
      serialization: "advanced",
      execArgv: [...options.permissions, "--disable-warning=ExperimentalWarning"],
      env: { TMPDIR: options.scratchFolder, LANG: "C.UTF-8" },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    if (this.#process.pid !== undefined) {
      options.onSpawn(this.#process.pid);
    }
    forEachLine(this.#process.stdout, options.onOutput);
    forEachLine(this.#process.stderr, options.onOutput);
    this.#process.on("error", (err) => this.#lost(err.message));
    this.#process.once("exit", (code, signal) => {
      this.#lost(signal ? `it was killed by ${signal}` : `it exited with code ${code}`);
    });
  }

  get scratchFolder(): string {
    return this.#options.scratchFolder;
  }

  /** It was told to finish. */
  get stopping(): boolean {
    return this.#stopping;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Resolves, with the reason, when the process has ended. */
  get exited(): Promise<string> {
    return this.#exited.promise;
  }

  /** False while it is loading, stopping, or its event loop is blocked. */
  get available(): boolean {
    return (
      this.#manifest !== undefined &&
      !this.#stopping &&
      this.#endedFor === undefined &&
      !this.#blocked
    );
  }

  get idle(): boolean {
    return this.#executions.size === 0 && this.#running.size === 0;
  }

  /** Loads the service. Rejects with one message that names the fault. */
  load(): Promise<ServiceManifest> {
    return new Promise((resolve, reject) => {
      const { readyTimeoutMs, service } = this.#options;
      const refuse = (message: string): void => {
        clearTimeout(timer);
        this.kill(message);
        reject(new Error(message));
      };
      const timer = setTimeout(
        () =>
          refuse(
            `the service was not ready after ${readyTimeoutMs / 1000} s; does it wait for something at import?`,
          ),
        readyTimeoutMs,
      );
      void this.exited.then((reason) =>
        refuse(`the worker ended while it loaded the service: ${reason}`),
      );
      this.#process.on("message", (message: WorkerMessage) => {
        if (message.type === "ready") {
          clearTimeout(timer);
          this.#manifest = message.manifest;
          this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS);
          resolve(message.manifest);
        } else if (message.type === "refused") {
          refuse(String(message.message));
        } else {
          this.#receive(message);
        }
      });
      this.#send({ type: "load", ...service });
    });
  }

  /** How many more calls of the endpoint it can take now. */
  freeSlots(endpoint: EndpointManifest): number {
    return this.available ? endpoint.concurrency - (this.#running.get(endpoint.name) ?? 0) : 0;
  }

  /** It has been given a call, which says that its service can be loaded and starts. */
  get used(): boolean {
    return this.#nextCallId > 1;
  }

  /** Calls under way: the fewer, the sooner it is at the next one. */
  get busyness(): number {
    return this.#executions.size;
  }

  /** Takes a slot; `release` gives it back. */
  reserve(endpoint: string): void {
    this.#running.set(endpoint, (this.#running.get(endpoint) ?? 0) + 1);
  }

  release(endpoint: string): void {
    const left = (this.#running.get(endpoint) ?? 0) - 1;
    if (left > 0) {
      this.#running.set(endpoint, left);
    } else {
      this.#running.delete(endpoint);
    }
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
    if (this.#process.exitCode !== null || !this.#process.connected) {
      setImmediate(() => this.#lose(id, "it had already ended"));
      return execution;
    }
    if (this.#outbox.push(execution.call) === 1) {
      setImmediate(() => this.#flush());
    }
    return execution;
  }

  sendAbort(id: number, reason: AbortReason): void {
    this.#flush();
    this.#send({ type: "abort", id, reason });
  }

  kill(message: string): void {
    this.#endedFor ??= message;
    this.#process.kill("SIGKILL");
  }

  /** Lets the calls under way finish, aborts them after `drainMs`, and ends the process. */
  async stop(drainMs: number): Promise<void> {
    this.#stopping = true;
    this.#flush();
    this.#send({ type: "stop" });
    const abort = setTimeout(() => {
      for (const execution of this.#executions.values()) {
        execution.abort("shutdown");
      }
    }, drainMs);
    const kill = setTimeout(() => this.kill("it did not stop"), drainMs + this.#options.graceMs);
    await this.exited;
    clearTimeout(abort);
    clearTimeout(kill);
  }

  #receive(message: WorkerMessage): void {
    switch (message.type) {
      case "results":
        for (const result of message.results) {
          const execution = this.#executions.get(result.id);
          this.#executions.delete(result.id);
          execution?.finish(result);
        }
        break;
      case "progress":
        this.#executions
          .get(message.id)
          ?.progress(Number(message.fraction), String(message.message));
        break;
      case "log":
        this.#executions.get(message.id)?.log(message);
        break;
      case "pong":
        this.#unansweredSinceMs = undefined;
        break;
      default:
        this.kill("it sent a message that the protocol does not have");
    }
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
      this.#send({ type: "ping", sequence: this.#nextCallId });
    }
  }

  #flush(): void {
    if (this.#outbox.length > 0) {
      const calls = this.#outbox;
      this.#outbox = [];
      this.#send({ type: "calls", calls });
    }
  }

  #send(message: NodeMessage): void {
    if (this.#process.connected) {
      // The callback takes the error of a process that is just ending; its exit tells the rest.
      this.#process.send(message, () => {});
    }
  }

  #lost(reason: string): void {
    clearInterval(this.#pings);
    // Set before anyone hears of the end: from here on it is not available.
    this.#endedFor ??= reason;
    const message = this.#endedFor;
    this.#exited.resolve(message);
    for (const id of [...this.#executions.keys()]) {
      this.#lose(id, message);
    }
  }

  #lose(id: number, message: string): void {
    const execution = this.#executions.get(id);
    this.#executions.delete(id);
    execution?.lose(message);
  }
}
