/**
 * The operating-system process of a worker and the channel to it. The process
 * runs under Node's permission model, with its own environment and scratch
 * folder. Any violation of the protocol ends it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { extname } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Attachments } from "../protocol/attachments.ts";
import { encodeMessage } from "../protocol/codec.ts";
import { FrameReader } from "../protocol/frames.ts";
import {
  type Call,
  CHANNEL_DESCRIPTOR,
  MAX_ATTACHMENTS,
  MAX_HEADER_BYTES,
  type NodeMessage,
  type WorkerMessage,
} from "../protocol/messages.ts";
import { readWorkerMessage } from "./check.ts";
import { heapExhausted, heapFlags, LimitWatch, type WorkerLimits } from "./limits.ts";
import { forEachLine } from "./lines.ts";
import { LogRateLimit } from "./log-rate-limit.ts";
import { ThrottledStream } from "./throttled-stream.ts";

const WORKER_PROGRAM = fileURLToPath(
  new URL(`../worker/main${extname(import.meta.url)}`, import.meta.url),
);

/**
 * Messages taken from a worker with limits, where one of 16 KiB counts twice. A worker that
 * answers calls as fast as it can sends a few thousand.
 */
const WORKER_MESSAGES_PER_SECOND = 10_000;
/** Bytes of messages that count as one more message for the rate of a worker. */
const WORKER_MESSAGE_UNIT_BYTES = 16 * 1024;

/**
 * How long the rest of an ended worker's output is awaited: it is there at once, or held open
 * by something.
 */
const OUTPUT_END_TIMEOUT_MS = 1_000;

export type OutputStream = "stdout" | "stderr" | "node";

export interface ServiceProcessOptions {
  /** Flags of Node's permission model. */
  readonly permissions: readonly string[];
  /** The worker's own folder, the only one that it may write. */
  readonly scratchFolder: string;
  /** Environment variables in addition to those of every worker. */
  readonly env: { readonly [name: string]: string };
  /** Default: no limits. */
  readonly limits?: WorkerLimits | undefined;
  /** Limit of one message from the worker. */
  readonly maxMessageBytes: number;
  onMessage(message: WorkerMessage): void;
  /** The node failed to handle a message: log it. The worker is killed. */
  onFault(err: unknown): void;
  /** A line that the service wrote, or that the node wrote about its output. */
  onOutput(line: string, stream: OutputStream): void;
}

export class ServiceProcess {
  readonly #process: ChildProcess;
  readonly #channel: Socket;
  readonly #reader: FrameReader;
  readonly #exited = Promise.withResolvers<string>();
  readonly #outputEnded = Promise.withResolvers<void>();
  readonly #options: ServiceProcessOptions;
  readonly #held = new DisposableStack();
  #logRateLimit: LogRateLimit | undefined;
  #watch: LimitWatch | undefined;
  #endedFor: string | undefined;
  #killed = false;
  #exhausted: string | undefined;

  constructor(options: ServiceProcessOptions) {
    const { permissions, scratchFolder, env, limits } = options;
    this.#options = options;
    this.#process = spawn(
      process.execPath,
      [
        ...permissions,
        ...(limits ? heapFlags(limits) : []),
        "--disable-warning=ExperimentalWarning",
        WORKER_PROGRAM,
      ],
      {
        env: { ...env, TMPDIR: scratchFolder, LANG: "C.UTF-8" },
        stdio: ["ignore", "pipe", "pipe", "pipe"],
        // In its own process group, a worker that signals its whole group reaches only itself.
        ...(limits && { cwd: scratchFolder, detached: true }),
      },
    );
    if (limits) {
      this.#hold(limits);
    }
    const throttled = limits !== undefined;
    for (const name of ["stdout", "stderr"] as const) {
      const onLine = (line: string): void => this.#output(line, name);
      const { [name]: stream } = this.#process;
      this.#held.use(forEachLine(stream, onLine, { throttled }));
    }
    this.#process.on("error", (err) => this.#end(err.message));
    this.#process.once("exit", (code, signal) => this.#exit(code, signal));
    this.#process.once("close", () => this.#outputEnded.resolve());
    this.#channel = this.#process.stdio[CHANNEL_DESCRIPTOR] as Readable & Socket;
    const throttle =
      limits && this.#held.use(new ThrottledStream(this.#channel, WORKER_MESSAGES_PER_SECOND));
    this.#reader = new FrameReader({
      maxBytes: options.maxMessageBytes,
      maxHeaderBytes: MAX_HEADER_BYTES,
      maxAttachments: MAX_ATTACHMENTS,
      onMessage: (header, attachments) => {
        throttle?.spend(1);
        this.#take(header, attachments);
      },
      onBroken: (reason) => this.kill(reason),
    });
    this.#channel.on("data", (chunk: Buffer) => {
      throttle?.spend(chunk.length / WORKER_MESSAGE_UNIT_BYTES);
      this.#reader.push(chunk);
    });
    // The process is ending; its exit gives the reason.
    this.#channel.on("error", () => {});
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Processor time in ms, as last measured; 0 for a worker without limits. */
  get lastCpuMs(): number {
    return this.#watch?.lastCpuMs ?? 0;
  }

  /** True when the node has killed it. */
  get killed(): boolean {
    return this.#killed;
  }

  /** True as soon as its end is known or decided. */
  get ended(): boolean {
    return this.#endedFor !== undefined;
  }

  /** Resolves with the reason when the process has ended. */
  get exited(): Promise<string> {
    return this.#exited.promise;
  }

  /** Resolves when the process has ended and all of its output was read. */
  get outputEnded(): Promise<void> {
    return this.#outputEnded.promise;
  }

  /** False when a line that the service logged exceeds the rate limit and is dropped. */
  admitLine(length: number): boolean {
    return this.#logRateLimit?.admit(length) ?? true;
  }

  send(message: NodeMessage): void {
    if (this.#channel.writable) {
      this.#channel.write(encodeMessage(message));
    }
  }

  kill(message: string): void {
    this.#killed ||= this.#endedFor === undefined;
    this.#endedFor ??= message;
    this.#process.kill("SIGKILL");
  }

  /** Kills a worker that broke the protocol, and ignores everything else that it sent. */
  refuse(reason: string): void {
    this.#reader.end();
    this.kill(reason);
  }

  /** No message of a worker may crash the node: an exception here kills the worker. */
  #take(header: unknown, attachments: Attachments): void {
    let fault: string | undefined;
    try {
      const message = readWorkerMessage(header, attachments);
      fault = attachments.fault;
      if (message && fault === undefined) {
        this.#options.onMessage(message);
        return;
      }
    } catch (err) {
      this.#options.onFault(err);
    }
    this.refuse(fault ?? "it sent a message that the protocol does not have");
  }

  #hold(limits: WorkerLimits): void {
    const { scratchFolder, onOutput } = this.#options;
    const tell = (message: string): void => onOutput(message, "node");
    this.#logRateLimit = this.#held.use(new LogRateLimit(limits.logLinesPerSecond, tell));
    const { pid } = this.#process;
    if (pid !== undefined) {
      const kill = (reason: string): void => this.kill(reason);
      this.#watch = this.#held.use(new LimitWatch({ pid, scratchFolder, limits, kill }));
    }
  }

  #output(line: string, stream: OutputStream): void {
    const { limits, onOutput } = this.#options;
    this.#exhausted ??= limits && heapExhausted(line, limits);
    if (this.admitLine(line.length)) {
      onOutput(line, stream);
    }
  }

  #exit(code: number | null, signal: NodeJS.Signals | null): void {
    const reason = signal ? `it was killed by ${signal}` : `it exited with code ${code}`;
    const timer = setTimeout(() => this.#outputEnded.resolve(), OUTPUT_END_TIMEOUT_MS);
    const told = this.#outputEnded.promise.then(() => {
      clearTimeout(timer);
      this.#held.dispose();
    });
    if (signal === "SIGABRT" && this.#options.limits) {
      // V8 aborted the process, and its last lines, which say why, may still be on their way.
      void told.then(() => this.#end(this.#exhausted ?? reason));
    } else {
      this.#end(reason);
    }
  }

  #end(reason: string): void {
    this.#endedFor ??= reason;
    this.#exited.resolve(this.#endedFor);
    if (this.#process.pid === undefined) {
      this.#outputEnded.resolve();
    }
  }
}

/** Batches calls: those of one turn of the event loop go to the worker in one message. */
export class CallOutbox {
  readonly #send: (calls: readonly Call[]) => void;
  #calls: Call[] = [];

  constructor(send: (calls: readonly Call[]) => void) {
    this.#send = send;
  }

  post(call: Call): void {
    if (this.#calls.push(call) === 1) {
      setImmediate(() => this.flush());
    }
  }

  /** Sends the posted calls now. */
  flush(): void {
    if (this.#calls.length > 0) {
      const calls = this.#calls;
      this.#calls = [];
      this.#send(calls);
    }
  }
}
