/**
 * The operating-system process of a worker: how it is started (`launch/`), the
 * channel to it, its output, its limits, and its heartbeats. Any violation of the protocol ends it.
 */
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { giveBack, isLong } from "../collections/bytes.ts";
import { perSecond, TokenBucket } from "../collections/token-bucket.ts";
import type { Attachments } from "../protocol/attachments.ts";
import { encodeMessage } from "../protocol/codec.ts";
import { FrameReader } from "../protocol/frames.ts";
import {
  CHANNEL_DESCRIPTOR,
  GPU_LOST_EXIT_CODE,
  MAX_ATTACHMENTS,
  MAX_HEADER_BYTES,
  type NodeMessage,
  type WorkerMessage,
} from "../protocol/messages.ts";
import { readWorkerMessage } from "./checks/check.ts";
import type { WorkerGpu } from "./gpus/gpus.ts";
import type { Launch, LaunchedProcess, WorkerEgress, WorkerRights } from "./launch/launch.ts";
import type { WorkerModel } from "./launch/models.ts";
import { launchNode } from "./launch/node.ts";
import { LimitWatch, type Watched } from "./limit-watch.ts";
import { heapExhausted, outOfMemory, type WorkerCache, type WorkerLimits } from "./limits.ts";
import { LogRateLimit } from "./log-rate-limit.ts";
import type { WorkerImage } from "./sandbox/image.ts";
import { cpuTimeMs, residenceOf, type WorkerUsage } from "./usage.ts";
import type { WorkerEnd } from "./worker-end.ts";

/** Line of a service's output, cut beyond: what it writes must not fill the node's memory. */
const MAX_OUTPUT_LINE_CHARACTERS = 8_192;

/** Output read from a worker with limits. Beyond that the service waits when it writes. */
const OUTPUT_BYTES_PER_SECOND = 8 * 1024 * 1024;

/**
 * How long the rest of an ended worker's output is awaited: it is there at once, or held open
 * by something.
 */
const OUTPUT_END_TIMEOUT_MS = 1_000;

export type OutputStream = "stdout" | "stderr" | "node";

interface ServiceProcessOptions {
  readonly rights: WorkerRights;
  /** How it is started. Default: in Node alone. */
  readonly launch?: Launch | undefined;
  /** The worker's own folder. It may write the cache besides, and no other. */
  readonly scratchFolder: string;
  /** The folder that it shares with the other workers of its deployment. Default: none. */
  readonly cache?: WorkerCache | undefined;
  /** Environment variables in addition to those of every worker. */
  readonly env: { readonly [name: string]: string };
  /** Default: no limits. */
  readonly limits?: WorkerLimits | undefined;
  /** What it has of the GPUs of the machine. Default: nothing. */
  readonly gpus?: readonly WorkerGpu[] | undefined;
  /** The folder with the files of its system packages. Default: none. */
  readonly layer?: string | undefined;
  /** The image that is its root, in a sandbox of the kernel. Default: none. */
  readonly image?: WorkerImage | undefined;
  readonly models?: readonly WorkerModel[] | undefined;
  /** Its egress proxy. Default: none. */
  readonly egress?: WorkerEgress | undefined;
  /** Limit of one message from the worker. */
  readonly maxMessageBytes: number;
  onMessage(message: WorkerMessage): void;
  /** The node failed to handle a message: log it. The worker is killed. */
  onFault(err: unknown): void;
  /** A line that the service wrote, or that the node wrote about its output. */
  onOutput(line: string, stream: OutputStream): void;
}

export class ServiceProcess {
  readonly #launched: LaunchedProcess;
  readonly #channel: WorkerChannel;
  readonly #exited = Promise.withResolvers<WorkerEnd>();
  readonly #outputEnded = Promise.withResolvers<void>();
  readonly #options: ServiceProcessOptions;
  readonly #held = new DisposableStack();
  #logRateLimit: LogRateLimit | undefined;
  #watch: LimitWatch | undefined;
  /** Processor time, as last measured by `usage`. */
  #cpuMs = 0;
  #end: WorkerEnd | undefined;
  #exhausted: string | undefined;
  /** Why it exits, as it said itself. */
  #said: string | undefined;

  constructor(options: ServiceProcessOptions) {
    const { launch = launchNode(), limits, egress } = options;
    this.#options = options;
    this.#launched = launch({ ...options, limits, egress });
    const { child } = this.#launched;
    if (limits) {
      this.#hold(limits);
    }
    const throttled = limits !== undefined;
    for (const name of ["stdout", "stderr"] as const) {
      const onLine = (line: string): void => this.#output(line, name);
      const { [name]: stream } = child;
      if (stream) {
        this.#held.use(forEachLine(stream, onLine, { throttled }));
      }
    }
    child.on("error", ({ message }) => this.#ended({ cause: "crashed", message }));
    child.once("exit", (code, signal) => this.#exit(code, signal));
    child.once("close", () => this.#outputEnded.resolve());
    this.#channel = this.#held.use(
      new WorkerChannel(child.stdio[CHANNEL_DESCRIPTOR] as Readable & Socket, {
        maxMessageBytes: options.maxMessageBytes,
        throttled,
        onMessage: (message) => options.onMessage(message),
        onFault: (err) => options.onFault(err),
        onBroken: (reason) => this.kill(reason),
      }),
    );
  }

  /** The process that ends the worker when it is killed; undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#launched.child.pid;
  }

  /** What the worker uses now; after its end, the processor time as last measured. */
  usage(): WorkerUsage {
    const { child } = this.#launched;
    const hasEnded = child.exitCode !== null || child.signalCode !== null;
    const pid = hasEnded ? undefined : this.#launched.pid();
    const cpuMs = pid === undefined ? undefined : cpuTimeMs(pid);
    this.#cpuMs = Math.max(this.#cpuMs, cpuMs ?? 0, this.#watch?.lastCpuMs ?? 0);
    const memoryBytes = pid === undefined ? undefined : residenceOf(pid)?.bytes;
    return { cpuMs: this.#cpuMs, memoryBytes: memoryBytes ?? 0 };
  }

  /** True as soon as its end is known or decided. */
  get ended(): boolean {
    return this.#end !== undefined;
  }

  /** Resolves when the process has ended. */
  get exited(): Promise<WorkerEnd> {
    return this.#exited.promise;
  }

  /** Resolves when the process has ended and all of its output was read. */
  get outputEnded(): Promise<void> {
    return this.#outputEnded.promise;
  }

  /** What watches its limits, and measures its memory; undefined where it has none. */
  get watch(): Pick<LimitWatch, "callBegan" | "callEnded"> | undefined {
    return this.#watch;
  }

  /** False when a line that the service logged exceeds the rate limit and is dropped. */
  admitLine(length: number): boolean {
    return this.#logRateLimit?.admit(length) ?? true;
  }

  /**
   * Calls go at once, and come in a turn of their own (`calls/worker-calls.ts`). All else goes after
   * what the worker has sent was read: a write to one that has gone ends its channel, and a timer of
   * a loop that is late comes before the reading.
   */
  send(message: NodeMessage): void {
    this.#watch?.wake();
    if (message.type === "calls" || message.type === "batch") {
      this.#channel.send(message);
    } else {
      setImmediate(() => this.#channel.send(message));
    }
  }

  /** It exits by itself, for this reason. */
  explain(reason: string): void {
    this.#said ??= reason;
  }

  /** The first reason counts. */
  kill(message: string, cause: WorkerEnd["cause"] = "killed"): void {
    this.#end ??= { cause, message };
    this.#launched.kill();
  }

  /** Kills a worker that broke the protocol, and ignores everything else that it sent. */
  refuse(reason: string): void {
    this.#channel.end();
    this.kill(reason);
  }

  #hold(limits: WorkerLimits): void {
    const { scratchFolder, cache, onOutput } = this.#options;
    const tell = (message: string): void => onOutput(message, "node");
    this.#logRateLimit = this.#held.use(new LogRateLimit(limits.logLinesPerSecond, tell));
    if (this.pid !== undefined) {
      const pid = (): number | undefined => this.#launched.pid();
      const kill: Watched["kill"] = (reason, cause) => this.kill(reason, cause);
      const { first } = this.#launched;
      const watched = { pid, first, scratchFolder, cache, limits, kill };
      this.#watch = this.#held.use(new LimitWatch(watched));
    }
  }

  #output(line: string, stream: OutputStream): void {
    const { limits, onOutput } = this.#options;
    this.#exhausted ??= limits && heapExhausted(line, limits);
    if (this.admitLine(line.length)) {
      onOutput(line, stream);
    }
  }

  #exit(exitCode: number | null, exitSignal: NodeJS.Signals | null): void {
    const { code, signal } = this.#launched.endOf(exitCode, exitSignal);
    const lostGpu = code === GPU_LOST_EXIT_CODE && (this.#options.gpus ?? []).length > 0;
    const crash: WorkerEnd = {
      cause: lostGpu ? "gpu" : "crashed",
      message: signal
        ? `it was killed by ${signal}`
        : `it exited with code ${code}${lostGpu ? ": its GPU cannot be used any more" : ""}`,
    };
    const timer = setTimeout(() => this.#outputEnded.resolve(), OUTPUT_END_TIMEOUT_MS);
    const exceeded = this.#launched.memory?.exceeded();
    this.#launched.memory?.[Symbol.dispose]();
    const told = this.#outputEnded.promise.then(() => {
      clearTimeout(timer);
      this.#held.dispose();
    });
    if (exceeded !== undefined && this.#options.limits) {
      this.#ended({ cause: "memory", message: outOfMemory(exceeded, this.#options.limits) });
    } else if (this.#said !== undefined && code !== 0) {
      this.#ended({ cause: "crashed", message: this.#said });
    } else if (signal === "SIGABRT" && this.#options.limits) {
      // V8 aborted the process, and its last lines, which say why, may still be on their way.
      void told.then(() => {
        const message = this.#exhausted;
        this.#ended(message === undefined ? crash : { cause: "memory", message });
      });
    } else {
      this.#ended(crash);
    }
  }

  #ended(end: WorkerEnd): void {
    this.#end ??= end;
    this.#exited.resolve(this.#end);
    if (this.pid === undefined) {
      // Nothing was started, so nothing exits.
      this.#launched.memory?.[Symbol.dispose]();
      this.#outputEnded.resolve();
    }
  }
}

// Splits the output of a worker into lines, with a limit of length and, optionally, of rate.

/**
 * Calls back for each line of a text stream. Dispose of the returned throttle
 * when the process has ended.
 */
function forEachLine(
  stream: Readable | null,
  onLine: (line: string) => void,
  options: { readonly throttled?: boolean } = {},
): Disposable | undefined {
  const throttle =
    stream && options.throttled ? new ThrottledStream(stream, OUTPUT_BYTES_PER_SECOND) : undefined;
  let rest = "";
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    throttle?.spend(chunk.length);
    const lines = (rest + chunk).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_OUTPUT_LINE_CHARACTERS);
    for (const line of lines) {
      onLine(line.slice(0, MAX_OUTPUT_LINE_CHARACTERS));
    }
  });
  return throttle;
}

// The channel to a worker: frames in both directions. What a worker sends is hostile
// bytes, so a message that the protocol does not have breaks the channel, and a worker
// with limits is read no faster than a rate.

/**
 * Messages taken from a worker with limits, where one of 16 KiB counts twice. A worker that
 * answers calls as fast as it can sends a few thousand.
 */
const WORKER_MESSAGES_PER_SECOND = 10_000;
/** Bytes of messages that count as one more message for the rate of a worker. */
const WORKER_MESSAGE_UNIT_BYTES = 16 * 1024;

interface WorkerChannelOptions {
  /** Limit of one message from the worker. */
  readonly maxMessageBytes: number;
  /** Reads no faster than the rate of a worker with limits. */
  readonly throttled: boolean;
  onMessage(message: WorkerMessage): void;
  /** The node failed to handle a message: log it. The channel is broken. */
  onFault(err: unknown): void;
  /** The worker broke the protocol, and nothing more is read of it. */
  onBroken(reason: string): void;
}

class WorkerChannel implements Disposable {
  readonly #socket: Socket;
  readonly #options: WorkerChannelOptions;
  readonly #reader: FrameReader;
  readonly #throttle: ThrottledStream | undefined;

  constructor(socket: Socket, options: WorkerChannelOptions) {
    this.#socket = socket;
    this.#options = options;
    const throttle = options.throttled
      ? new ThrottledStream(socket, WORKER_MESSAGES_PER_SECOND)
      : undefined;
    this.#throttle = throttle;
    this.#reader = new FrameReader({
      maxBytes: options.maxMessageBytes,
      maxHeaderBytes: MAX_HEADER_BYTES,
      maxAttachments: MAX_ATTACHMENTS,
      onMessage: (header, attachments) => {
        throttle?.spend(1);
        this.#take(header, attachments);
      },
      onBroken: (reason) => options.onBroken(reason),
    });
    socket.on("data", (chunk: Buffer) => {
      throttle?.spend(chunk.length / WORKER_MESSAGE_UNIT_BYTES);
      this.#reader.push(chunk);
    });
    // The process is ending; its exit gives the reason.
    socket.on("error", () => {});
  }

  send(message: NodeMessage): void {
    if (this.#socket.writable) {
      const frame = encodeMessage(message);
      // A call back of each short write would cost as much as the write.
      this.#socket.write(frame, isLong(frame) ? () => giveBack(frame) : undefined);
    }
  }

  /** Ignores everything else that the worker sends. */
  end(): void {
    this.#reader.end();
  }

  [Symbol.dispose](): void {
    this.#throttle?.[Symbol.dispose]();
  }

  /** No message of a worker may crash the node: an exception here breaks the channel. */
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
    this.end();
    this.#options.onBroken(fault ?? "it sent a message that the protocol does not have");
  }
}

/**
 * Back-pressure on a stream by a token bucket: when more was spent than the rate
 * allows, the stream is paused until the bucket has filled, so that its writer
 * waits too.
 */
class ThrottledStream implements Disposable {
  readonly #stream: Readable;
  readonly #bucket: TokenBucket;
  #timer: NodeJS.Timeout | undefined;

  /** `rate` is how much a second is allowed, in the unit of `spend`. */
  constructor(stream: Readable, rate: number) {
    this.#stream = stream;
    this.#bucket = new TokenBucket(perSecond(rate));
  }

  spend(amount: number): void {
    const waitMs = this.#bucket.spend(amount);
    if (waitMs > 0 && this.#timer === undefined) {
      this.#stream.pause();
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#stream.resume();
      }, waitMs);
    }
  }

  /** Ends the throttling and resumes the stream. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#stream.resume();
  }
}

// Heartbeats between the node and one worker, which detect a blocked event loop.

/**
 * Silence after a ping at which a worker counts as blocked and gets no new calls while others
 * do.
 */
const WORKER_HEARTBEAT_TIMEOUT_MS = 2_000;
/** Silence after a ping at which a worker gets new calls only where no other one has room. */
const SLOW_WORKER_HEARTBEAT_MS = 100;
/** Interval at which a node pings a worker that has calls. */
const WORKER_HEARTBEAT_INTERVAL_MS = 100;
/** Interval at which it is looked whether an idle worker has calls. */
const IDLE_WORKER_HEARTBEAT_INTERVAL_MS = 1_000;

interface WorkerHeartbeatOptions {
  /** An idle worker is not pinged. */
  readonly isBusy: () => boolean;
  readonly ping: () => void;
  /** The worker does not answer, or answers again after it was blocked. */
  readonly onChange: () => void;
}

/** Tracks whether a worker answers or user code blocks its event loop. */
export class WorkerHeartbeat implements Disposable {
  readonly #options: WorkerHeartbeatOptions;
  #timer: NodeJS.Timeout | undefined;
  /** True while the next look is that of an idle worker. */
  #isCalm = false;
  #unansweredSinceMs: number | undefined;
  /** True when it was told that the worker is blocked. */
  #isTold = false;

  constructor(options: WorkerHeartbeatOptions) {
    this.#options = options;
  }

  /** Starts the heartbeats; a second call does nothing. */
  start(): void {
    if (this.#timer === undefined) {
      this.#expect();
    }
  }

  /** The worker has a call. */
  wake(): void {
    if (this.#isCalm) {
      clearTimeout(this.#timer);
      this.#expect();
    }
  }

  get blocked(): boolean {
    return this.#silentForMs > WORKER_HEARTBEAT_TIMEOUT_MS;
  }

  /** True when it may be blocked: a call would begin sooner in another worker. */
  get slow(): boolean {
    return this.#silentForMs > SLOW_WORKER_HEARTBEAT_MS;
  }

  /** The worker answered a ping. */
  pong(): void {
    const wasBlocked = this.blocked;
    this.#unansweredSinceMs = undefined;
    this.#isTold = false;
    if (wasBlocked) {
      this.#options.onChange();
    }
  }

  [Symbol.dispose](): void {
    this.#isCalm = false;
    clearTimeout(this.#timer);
  }

  get #silentForMs(): number {
    return this.#unansweredSinceMs === undefined ? 0 : performance.now() - this.#unansweredSinceMs;
  }

  #expect(): void {
    this.#isCalm = !this.#options.isBusy();
    this.#timer = setTimeout(
      () => this.#look(),
      this.#isCalm ? IDLE_WORKER_HEARTBEAT_INTERVAL_MS : WORKER_HEARTBEAT_INTERVAL_MS,
    );
  }

  #look(): void {
    this.#expect();
    if (this.#options.isBusy() && this.#unansweredSinceMs === undefined) {
      this.#unansweredSinceMs = performance.now();
      this.#options.ping();
    }
    if (this.blocked && !this.#isTold) {
      this.#isTold = true;
      this.#options.onChange();
    }
  }
}
