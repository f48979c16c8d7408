/**
 * A worker's operating-system process and the channel to it: started with the
 * permission model, an environment of its own and a scratch folder. Whatever
 * breaks the protocol ends it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { extname } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { encodeMessage, FrameReader } from "../protocol/frames.ts";
import { CHANNEL_DESCRIPTOR, type NodeMessage, type WorkerMessage } from "../protocol/messages.ts";
import { readWorkerMessage } from "./check.ts";
import { heapExhausted, heapFlags, LimitWatch, type WorkerLimits } from "./limits.ts";
import { forEachLine } from "./lines.ts";
import { LogRateLimit } from "./log-rate-limit.ts";
import { ThrottledStream } from "./throttled-stream.ts";

const HOST = fileURLToPath(new URL(`../worker/main${extname(import.meta.url)}`, import.meta.url));

/**
 * With limits: messages that are taken in a second, where one of 16 KiB counts
 * twice. A worker that answers calls as fast as it can sends a few thousand.
 */
const PACE_MESSAGES = 10_000;
const MESSAGE_BYTES = 16 * 1024;

/** The rest of its output is waited for no longer: it is there at once, or held open by something. */
const OUTPUT_MS = 1_000;

export type OutputStream = "stdout" | "stderr" | "node";

export interface ServiceProcessOptions {
  /** Flags of Node's permission model. */
  readonly permissions: readonly string[];
  /** A folder of its own that it may write. */
  readonly scratchFolder: string;
  /** Its environment besides what every worker has. */
  readonly env: { readonly [name: string]: string };
  /** What it may use. Default: whatever there is. */
  readonly limits?: WorkerLimits | undefined;
  /** Largest message that is taken from it. */
  readonly maxMessageBytes: number;
  onMessage(message: WorkerMessage): void;
  /** A message could not be taken for a fault of the node, to be logged; the worker is ended. */
  onFault(err: unknown): void;
  /** A line that the service wrote, or the node about what it wrote. */
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
  #logBudget: LogRateLimit | undefined;
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
        HOST,
      ],
      {
        env: { ...env, TMPDIR: scratchFolder, LANG: "C.UTF-8" },
        stdio: ["ignore", "pipe", "pipe", "pipe"],
        // In a group of its own, a signal to the whole group reaches nobody else.
        ...(limits && { cwd: scratchFolder, detached: true }),
      },
    );
    if (limits) {
      this.#hold(limits);
    }
    const paced = limits !== undefined;
    for (const name of ["stdout", "stderr"] as const) {
      const onLine = (line: string): void => this.#output(line, name);
      const { [name]: stream } = this.#process;
      this.#held.use(forEachLine(stream, onLine, { paced }));
    }
    this.#process.on("error", (err) => this.#end(err.message));
    this.#process.once("exit", (code, signal) => this.#exit(code, signal));
    this.#process.once("close", () => this.#outputEnded.resolve());
    this.#channel = this.#process.stdio[CHANNEL_DESCRIPTOR] as Readable & Socket;
    const pace = limits && this.#held.use(new ThrottledStream(this.#channel, PACE_MESSAGES));
    this.#reader = new FrameReader({
      maxBytes: options.maxMessageBytes,
      onMessage: (received) => {
        pace?.spend(1);
        this.#take(received);
      },
      onBroken: (reason) => this.kill(reason),
    });
    this.#channel.on("data", (chunk: Buffer) => {
      pace?.spend(chunk.length / MESSAGE_BYTES);
      this.#reader.push(chunk);
    });
    // Its process is ending: the exit tells why.
    this.#channel.on("error", () => {});
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Processor time that it had used when it was last looked at; 0 for one without limits. */
  get lastCpuMs(): number {
    return this.#watch?.lastCpuMs ?? 0;
  }

  /** The node has ended it. */
  get killed(): boolean {
    return this.#killed;
  }

  /** True from the moment in which its end is known or decided. */
  get ended(): boolean {
    return this.#endedFor !== undefined;
  }

  /** Resolves, with the reason, when the process has ended. */
  get exited(): Promise<string> {
    return this.#exited.promise;
  }

  /** Resolves when it has ended and all that it wrote has been told. */
  get outputEnded(): Promise<void> {
    return this.#outputEnded.promise;
  }

  /** True when a line that its service logged through the channel is to be taken. */
  admitLine(length: number): boolean {
    return this.#logBudget?.admit(length) ?? true;
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

  /** Ends a worker that broke the protocol, and takes nothing more of what it sent. */
  refuse(reason: string): void {
    this.#reader.end();
    this.kill(reason);
  }

  /** Nothing that a worker sends may end the node: what throws here ends the worker. */
  #take(received: unknown): void {
    try {
      const message = readWorkerMessage(received);
      if (message) {
        this.#options.onMessage(message);
        return;
      }
    } catch (err) {
      this.#options.onFault(err);
    }
    this.refuse("it sent a message that the protocol does not have");
  }

  #hold(limits: WorkerLimits): void {
    const { scratchFolder, onOutput } = this.#options;
    const tell = (message: string): void => onOutput(message, "node");
    this.#logBudget = this.#held.use(new LogRateLimit(limits.logLinesPerSecond, tell));
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
    const timer = setTimeout(() => this.#outputEnded.resolve(), OUTPUT_MS);
    const told = this.#outputEnded.promise.then(() => {
      clearTimeout(timer);
      this.#held.dispose();
    });
    if (signal === "SIGABRT" && this.#options.limits) {
      // V8 gave up, and what it wrote may still be on its way.
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
