/** The life of one call in a worker: its slot, deadline, abort, grace, kill, and its end. */
import type { Agent } from "node:http";
import type { Problem } from "../../errors.ts";
import type { ServiceLine } from "../../log/log.ts";
import type { ResponseHead } from "../../protocol/heads.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type {
  AbortReason,
  Call,
  CallFailure,
  Chunk,
  PackedPayload,
  Payload,
} from "../../protocol/messages.ts";
import type { Units } from "../../protocol/units.ts";
import { isMountName } from "../../service/mounts.ts";
import type { GpuTime } from "../gpus/gpu-time.ts";
import type { BatchPost } from "./batch-post.ts";
import type { MountAgent } from "./mount-agents.ts";
import type { Piece, ReceivedChunks } from "./received-chunks.ts";

/**
 * How long a function may go on, unless its endpoint says otherwise: after its caller has left,
 * before the abort counts as not heard; and after an abort that it did not hear, beside others.
 */
export const ABORT_GRACE_MS = 300_000;

/** The worker died, with this call `alone` in it or with others, any of which may have done it. */
export interface Loss {
  readonly message: string;
  readonly alone: boolean;
  /** It held more memory than its limit. */
  readonly outOfMemory: boolean;
}

export interface ExecuteOptions extends Omit<Call, "id" | "deadlineMs" | "arguments"> {
  readonly kind: EndpointManifest["kind"];
  readonly arguments: Payload;
  readonly timeoutMs: number;
  /** How long it may go on after an abort that it does not hear. Default: 5 min. */
  readonly abortGraceMs?: number | undefined;
  /** How long it has after an abort that somebody waits for. Default: that of its worker. */
  readonly graceMs?: number;
  /**
   * Its end is told when its function has ended, or its worker: what runs of its key is counted.
   * Default: a grace period after an abort that it does not hear.
   */
  readonly isCounted?: boolean;
  /** The calls that the function takes together with this one. Default: it takes this one alone. */
  readonly batch?: BatchPost;
  /** Of an endpoint that streams. */
  readonly stream?: EndpointManifest["stream"] | undefined;
  /** Connections to the mounted server that is sent the request. Default: a function is called. */
  readonly agent?: Agent | undefined;
}

/** What is known of a failure besides its description. */
export interface FailureFacts {
  /** What a mounted server answered, without blobs; undefined where that is too long. */
  readonly answer?: Payload | undefined;
  /** It is worth no other attempt, whatever the endpoint says. */
  readonly isFinal?: boolean;
}

/** How an execution ended. */
export type ExecutionEnd =
  /** Of a streamed result, the number of its pieces as JSON: the pieces themselves were received. */
  | { readonly kind: "result"; readonly result: Payload }
  | ({ readonly kind: "failure"; readonly failure: CallFailure } & FailureFacts)
  /** Its files could not be moved to or from the worker: the call can be made again. */
  | { readonly kind: "unavailable"; readonly problem: Problem }
  /** It was aborted for this reason; what the function did after the abort does not matter. */
  | {
      readonly kind: "aborted";
      readonly reason: AbortReason;
      /** The worker has to be ended for a call that its timeout did not end, or died meanwhile. */
      readonly killed?: true;
    }
  | ({ readonly kind: "lost" } & Loss)
  /** Nothing is heard of the worker's machine any more, which is nobody's fault here. */
  | { readonly kind: "cut_off"; readonly message: string }
  /** The node ended the worker because of another execution; or, `unbegun`, before this one ran. */
  | { readonly kind: "displaced"; readonly message: string; readonly unbegun?: true };

/**
 * What became of an end: `recorded` in the storage, `stale` because the attempt had ended before,
 * or `given_up` by a node that stops.
 */
export type EndRecord = "recorded" | "stale" | "given_up";

export interface ExecutionListener {
  /** Returns what becomes of the end; nothing for a call that is not stored. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most listeners store nothing, and return nothing
  onEnd(end: ExecutionEnd): Promise<EndRecord> | undefined | void;
  /** It was aborted; its end is told when the function ends, or within the grace period. */
  onAbort?(reason: AbortReason): void;
  /**
   * A piece of a streamed result, in order from 1, before the end. Each must be answered by
   * `Execution.more` once it is consumed, or the function stops: those that are not take up at
   * most a window (`stream-window.ts`) and one piece.
   */
  onChunk?(piece: Piece, sequence: number): void;
  /** What the function said of its answer, before the first piece of a streamed result. */
  onResponse?(response: ResponseHead): void;
  onProgress?(fraction: number, message: string): void;
  /** The function has reported units, before its end. */
  onUsage?(units: Units): void;
  onLog?(line: ServiceLine): void;
}

/** Identifies the call. */
interface ExecutedCall extends Pick<Call, "id" | "endpoint"> {
  readonly kind: EndpointManifest["kind"];
}

/** Whether the calls of an endpoint are counted by their keys while they run (`isCounted`). */
export function countsCalls({ byKey }: Pick<EndpointManifest, "byKey">): boolean {
  return byKey?.concurrency !== undefined;
}

/** What an execution needs from its worker. */
export interface ExecutionHost {
  sendAbort(id: number, reason: AbortReason): void;
  /** The worker may reuse the room of this many chunks of the call. */
  sendMore(id: number, count: number): void;
  /** Calls `look` of the worker's executions at this time, by `performance.now()`. */
  expect(deadlineMs: number): void;
  /**
   * It goes on a grace period after its abort. True: the worker goes on with it for `limitMs` at
   * most; false: the worker is being ended.
   */
  unheard(execution: Execution, limitMs: number, message: string): boolean;
}

/**
 * One call under way in a worker. A deadline and an abort take the same steps:
 * `ctx.signal` aborts, the function has a grace period to end by itself, and
 * then the worker is killed, because nothing else stops a function that ignores
 * the signal or blocks its event loop. Beside others the call has its end, and the
 * worker drains (`Drain`); one that is counted by its key has its end when its
 * function ends. A call whose caller has left keeps its slot for longer: nobody
 * waits for it, it most likely ends by itself, and what the worker has loaded is
 * worth more than the slot.
 */
export class Execution {
  readonly call: ExecutedCall;
  readonly #listener: ExecutionListener;
  readonly #host: ExecutionHost;
  readonly #graceMs: number;
  readonly #abortGraceMs: number;
  readonly #isCounted: boolean;
  readonly #chunks: ReceivedChunks | undefined;
  /** By `performance.now()`; Infinity while the deadline is suspended. */
  #deadlineMs = Number.POSITIVE_INFINITY;
  #grace: NodeJS.Timeout | undefined;
  #abortedFor: AbortReason | undefined;
  /** The worker is ended for it. */
  #isKiller = false;
  /** Its end was told, and its function goes on. */
  #isTold = false;
  /** True once the call was sent, so that its function may run. */
  isInWorker = false;
  /** The most memory that its worker held while it ran, when it has ended; undefined: not known. */
  peakMemoryBytes: number | undefined;
  /** Lines that were left out since the last one that was logged. */
  #skippedLines = 0;

  constructor(
    call: ExecutedCall,
    listener: ExecutionListener,
    options: {
      readonly host: ExecutionHost;
      readonly graceMs: number;
      /** Default: 5 min. */
      readonly abortGraceMs?: number | undefined;
      readonly timeoutMs: number;
      /** As in `ExecuteOptions`. */
      readonly isCounted?: boolean | undefined;
      /** Of an endpoint that streams. */
      readonly chunks?: ReceivedChunks | undefined;
    },
  ) {
    this.call = call;
    this.#listener = listener;
    this.#host = options.host;
    this.#graceMs = options.graceMs;
    this.#abortGraceMs = options.abortGraceMs ?? ABORT_GRACE_MS;
    this.#isCounted = options.isCounted === true;
    this.#chunks = options.chunks;
    this.resume(options.timeoutMs);
  }

  /** Aborts the call if its deadline has passed. Returns the next deadline. */
  look(nowMs: number): number {
    if (this.#deadlineMs <= nowMs) {
      this.abort("timeout");
    }
    return this.#deadlineMs;
  }

  /** Aborts the function; only the first reason counts. */
  abort(reason: AbortReason): void {
    if (this.#abortedFor !== undefined) {
      return;
    }
    this.#abortedFor = reason;
    this.pause();
    const graceMs =
      reason === "caller_gone" ? Math.max(this.#graceMs, this.#abortGraceMs) : this.#graceMs;
    this.#grace = setTimeout(() => this.#unheard(graceMs, reason), graceMs);
    this.#host.sendAbort(this.call.id, reason);
    this.#listener.onAbort?.(reason);
  }

  /** True when it was aborted and its result no longer counts. */
  get isVoid(): boolean {
    return this.#abortedFor !== undefined && this.#abortedFor !== "shutdown";
  }

  /** Why it was aborted; undefined: it was not. */
  get abortedFor(): AbortReason | undefined {
    return this.#abortedFor;
  }

  /** True when its result comes in pieces. */
  get isStreamed(): boolean {
    return this.#chunks !== undefined;
  }

  /** Suspends the deadline: time spent on moving files does not count. */
  pause(): void {
    this.#deadlineMs = Number.POSITIVE_INFINITY;
  }

  /** Sets the deadline: the function begins now. */
  resume(timeoutMs: number): void {
    if (this.#abortedFor === undefined) {
      this.#deadlineMs = performance.now() + timeoutMs;
      this.#host.expect(this.#deadlineMs);
    }
  }

  /** Takes a chunk. Returns false for a forged one; those of an aborted call go nowhere. */
  chunk(chunk: Chunk): boolean {
    const piece = this.#chunks?.take(chunk);
    if (piece === undefined) {
      return false;
    }
    if (!this.isVoid) {
      if (chunk.response) {
        this.#listener.onResponse?.(chunk.response);
      }
      this.#listener.onChunk?.(piece, chunk.sequence);
    }
    return true;
  }

  /** This many pieces were consumed: the function may make as many more. */
  more(count: number): void {
    const told = this.#chunks?.consumed(count) ?? 0;
    if (told > 0) {
      this.#host.sendMore(this.call.id, told);
    }
  }

  /** False for the result of a stream that counts other chunks than those received. */
  ends(result: PackedPayload): boolean {
    return this.#chunks === undefined || this.#chunks.isEnd(result);
  }

  progress(fraction: number, message: string): void {
    if (this.#isTold) {
      return;
    }
    this.#listener.onProgress?.(fraction, message);
  }

  usage(units: Units): void {
    if (!this.#isTold) {
      this.#listener.onUsage?.(units);
    }
  }

  log({ level, message, fieldsJson, skipped: before = 0 }: ServiceLine): void {
    if (this.#isTold) {
      return;
    }
    const skipped = this.#skippedLines + before;
    this.#skippedLines = 0;
    this.#listener.onLog?.({
      level,
      message,
      ...(fieldsJson !== undefined && { fieldsJson }),
      ...(skipped > 0 && { skipped }),
    });
  }

  /** A line is left out of the log, and those that the worker left out before it. */
  skipLine({ skipped = 0 }: Pick<ServiceLine, "skipped">): void {
    this.#skippedLines += skipped + 1;
  }

  /** The function returned. */
  succeed(result: Payload): void {
    this.#end({ kind: "result", result });
  }

  /** The function threw, or its result was refused. */
  fail(failure: CallFailure, facts?: FailureFacts): void {
    this.#end({ kind: "failure", failure, ...facts });
  }

  /** Its files could not be moved to or from the worker. */
  giveUp(problem: Problem): void {
    this.#end({ kind: "unavailable", problem });
  }

  lose(loss: Loss): void {
    this.#end({ kind: "lost", ...loss });
  }

  /** The worker's machine is cut off. */
  cutOff(message: string): void {
    this.#end({ kind: "cut_off", message });
  }

  /** The worker was ended for another reason than this execution. */
  displace(message: string): void {
    this.#end({ kind: "displaced", message, ...(!this.isInWorker && { unbegun: true }) });
  }

  /** The function goes on after the abort and the grace period. */
  #unheard(graceMs: number, reason: AbortReason): void {
    this.#isKiller = true;
    const { endpoint } = this.call;
    const message = `endpoint ${endpoint} went on ${graceMs} ms after its abort (${reason})`;
    if (this.#host.unheard(this, this.#abortGraceMs, message) && !this.#isCounted) {
      this.#end({ kind: "displaced", message });
      this.#isTold = true;
    }
  }

  /**
   * An abort decides how the execution ended, except that a result that arrives
   * while the node shuts down is kept.
   */
  #end(end: ExecutionEnd): void {
    clearTimeout(this.#grace);
    if (this.#isTold) {
      return;
    }
    const reason = this.#abortedFor;
    const stands = reason === undefined || (reason === "shutdown" && end.kind === "result");
    const killed = reason === "timeout" && (this.#isKiller || end.kind === "lost");
    this.#listener.onEnd(stands ? end : { kind: "aborted", reason, ...(killed && { killed }) });
  }
}

// Slots: the right to run one call of an endpoint in a worker, and how many a worker has.

/** The worker and revision that ran a call, for the log. */
interface RanIn {
  readonly worker: string;
  /** Undefined where a service has no revisions. */
  readonly revision?: number;
}

/** The worker, as far as its slots need it. */
interface SlotOwner {
  readonly id: string;
  readonly gpuTime?: GpuTime | undefined;
  readonly revision: number | undefined;
  readonly capacity: Capacity;
  agentOf(mount: string): MountAgent | undefined;
  execute(call: ExecuteOptions, listener: ExecutionListener): Execution;
  release(endpoint: EndpointManifest): void;
}

/** A call for a slot, which knows its endpoint. */
export type SlotCall = Omit<
  ExecuteOptions,
  "endpoint" | "kind" | "timeoutMs" | "abortGraceMs" | "isCounted" | "stream" | "agent"
> & {
  /** Default: that of the endpoint. */
  readonly timeoutMs?: number;
};

/** The right to run one call, until it is released. */
export interface Slot {
  readonly workerId: string;
  readonly endpoint: string;
  readonly ranIn: RanIn;
  /** Undefined where the worker has no GPU. */
  readonly gpuTime?: GpuTime | undefined;
  /** True when nothing else runs in the worker meanwhile. */
  readonly alone: boolean;
  /** Connections to the mounted server that the slot is of; undefined for an endpoint. */
  readonly agent: MountAgent | undefined;
  execute(call: SlotCall, listener: ExecutionListener): Execution;
  /** Releases the slot; a second call does nothing. */
  release(): void;
}

/** A slot taken in a worker. */
export class WorkerSlot implements Slot {
  readonly workerId: string;
  readonly #worker: SlotOwner;
  readonly #endpoint: EndpointManifest;
  readonly #onOpen: (() => void) | undefined;
  readonly #onReleased: (() => void) | undefined;
  #held = true;

  get endpoint(): string {
    return this.#endpoint.name;
  }

  get gpuTime(): GpuTime | undefined {
    return this.#worker.gpuTime;
  }

  get alone(): boolean {
    return this.#onOpen !== undefined;
  }

  get agent(): MountAgent | undefined {
    return this.#worker.agentOf(this.#endpoint.name);
  }

  get ranIn(): RanIn {
    const { revision } = this.#worker;
    return { worker: this.workerId, ...(revision !== undefined && { revision }) };
  }

  /**
   * `onOpen`: opens the worker to others, who have been kept out; called with the release.
   * `onReleased`: called after the release of a slot of a mounted server, which calls and tasks
   * share.
   */
  constructor(
    worker: SlotOwner,
    endpoint: EndpointManifest,
    {
      onOpen,
      onReleased,
    }: { readonly onOpen?: () => void; readonly onReleased?: (() => void) | undefined } = {},
  ) {
    this.workerId = worker.id;
    this.#onOpen = onOpen;
    this.#onReleased = isMountName(endpoint.name) ? onReleased : undefined;
    this.#worker = worker;
    this.#endpoint = endpoint;
    worker.capacity.take(endpoint);
  }

  execute(call: SlotCall, listener: ExecutionListener): Execution {
    const { name, kind, timeoutMs, abortGraceMs, stream } = this.#endpoint;
    const agent = isMountName(name) ? this.agent : undefined;
    const isCounted = countsCalls(this.#endpoint);
    const facts = { endpoint: name, kind, timeoutMs, abortGraceMs, isCounted, stream, agent };
    return this.#worker.execute({ ...facts, ...call }, listener);
  }

  release(): void {
    if (this.#held) {
      this.#held = false;
      this.#onOpen?.();
      this.#worker.release(this.#endpoint);
      this.#onReleased?.();
    }
  }
}

/**
 * The slots of one worker. Each endpoint has its own slots, so that one with a
 * long queue does not keep the others waiting. When a call has to be killed,
 * the others in the worker are run again, and it does not count as a failure.
 * A worker that is closed has no free slot: it is kept for one call (`isolation.ts`).
 */
export class Capacity {
  readonly #running = new Map<string, number>();
  /** When the last slot was given back or, before any was taken, when it was made. */
  #idleSinceMs = performance.now();
  #isClosed = false;

  /** The number of free slots of the endpoint. */
  free(endpoint: EndpointManifest): number {
    return this.#isClosed ? 0 : endpoint.concurrency - this.taken(endpoint);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  close(): void {
    this.#isClosed = true;
  }

  open(): void {
    this.#isClosed = false;
  }

  /** The number of taken slots of the endpoint. */
  taken({ name }: EndpointManifest): number {
    return this.#running.get(name) ?? 0;
  }

  /** The number of taken slots of mounted servers. */
  get mounted(): number {
    let count = 0;
    for (const [name, taken] of this.#running) {
      count += isMountName(name) ? taken : 0;
    }
    return count;
  }

  /** True when no slot is taken. */
  get idle(): boolean {
    return this.#running.size === 0;
  }

  /** Since when no slot is taken, by `performance.now`; only while `idle`. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  take({ name }: EndpointManifest): void {
    this.#running.set(name, (this.#running.get(name) ?? 0) + 1);
  }

  giveBack({ name }: EndpointManifest): void {
    const left = (this.#running.get(name) ?? 0) - 1;
    if (left > 0) {
      this.#running.set(name, left);
    } else {
      this.#running.delete(name);
      if (this.idle) {
        this.#idleSinceMs = performance.now();
      }
    }
  }
}
