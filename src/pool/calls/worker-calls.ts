/**
 * The calls under way in one worker: from the moment that the node begins them to
 * their end, which is told exactly once, whatever the worker says or however it dies.
 */
import { SlotMap } from "../../collections/slots.ts";
import {
  type AbortReason,
  type Call,
  type CallResult,
  type Chunk,
  isAtHand,
  type NodeMessage,
  packPayload,
  type SentPayload,
  unpackPayload,
} from "../../protocol/messages.ts";
import { isMountName } from "../../service/mounts.ts";
import { Deadlines } from "../../time/deadlines.ts";
import type { LimitWatch } from "../limit-watch.ts";
import type { WorkerEnd } from "../worker-end.ts";
import type { BatchPost } from "./batch-post.ts";
import {
  type ExecuteOptions,
  Execution,
  type ExecutionHost,
  type ExecutionListener,
  type Loss,
} from "./execution.ts";
import { MountRequests, type MountRequestsOptions } from "./mount-requests.ts";
import { ReceivedChunks } from "./received-chunks.ts";
import type { TransferHost, Transfers } from "./transfers.ts";

interface ExecutionsOptions {
  /** Time between an abort and the kill, or the drain. */
  readonly graceMs: number;
  /** How files reach the worker, and come back. */
  readonly transfers: (host: TransferHost) => Transfers;
  /** How requests to mounted servers run. */
  readonly mounts: MountRequestsOptions;
  /** The number of the first call. Default: 1. */
  readonly firstId?: number;
}

/** The worker that executes the calls. */
interface CallExecutor {
  hasEnded(): boolean;
  send(message: NodeMessage): void;
  /** Kills the worker because of one execution; its other executions end as displaced. */
  sacrifice(message: string): void;
  /** True while it does not answer. */
  isBlocked(): boolean;
  /** True while nothing reaches it, so that it cannot hear an abort; it ends its calls by itself. */
  isCutOff?(): boolean;
  /** Whether the process of its service has ended since then, by `performance.now()`, and the worker has not. */
  hasRestartedSince?(ms: number): boolean;
  /** `isDraining` has changed. Undefined: it cannot drain, and is ended instead. */
  readonly onDraining?: () => void;
  /** What measures the memory of the worker, where something does. */
  watch?(): Pick<LimitWatch, "callBegan" | "callEnded"> | undefined;
}

export class WorkerCalls implements ExecutionHost {
  readonly #target: CallExecutor;
  readonly #graceMs: number;
  readonly #executions = new SlotMap<number, Execution>();
  readonly #deadlines = new Deadlines((nowMs) => this.#look(nowMs));
  readonly #transfers: Transfers;
  readonly #drain: Drain | undefined;
  readonly #requests: MountRequests;
  /** The calls of batches that were not sent yet, and their batches. */
  readonly #unsent = new Map<number, BatchPost>();
  readonly #outbox = new CallOutbox((posted) => {
    // The arguments of a call that has ended meanwhile are given back.
    const calls = posted.filter(({ id }) => this.#executions.has(id));
    if (calls.length > 0) {
      this.#target.send({ type: "calls", calls });
    }
  });
  #nextId: number;

  constructor(
    { graceMs, transfers, mounts, firstId = 1 }: ExecutionsOptions,
    target: CallExecutor,
  ) {
    this.#target = target;
    this.#graceMs = graceMs;
    this.#nextId = firstId;
    const { onDraining } = target;
    this.#drain =
      onDraining &&
      new Drain(graceMs, {
        busyness: () => this.size,
        isBlocked: () => target.isBlocked(),
        sacrifice: (message) => target.sacrifice(message),
        onDraining,
      });
    this.#requests = new MountRequests(mounts, {
      settle: (id) => this.#settle(id),
      hasRestartedSince: (ms) => target.hasRestartedSince?.(ms) === true,
    });
    this.#transfers = transfers({
      settle: (callId) => this.#settle(callId),
      isUnderWay: (callId) => this.#executions.has(callId),
    });
  }

  /** The number of calls under way. */
  get size(): number {
    return this.#executions.size;
  }

  /** How many of them are requests to mounted servers. */
  get requests(): number {
    return this.#requests.size;
  }

  /** The number of calls that have begun. */
  get begun(): number {
    return this.#nextId - 1;
  }

  /** True while the worker is to take no more calls, because one went on after its abort. */
  get isDraining(): boolean {
    return this.#drain?.isDraining === true;
  }

  get(id: number): Execution | undefined {
    return this.#executions.get(id);
  }

  /** Begins a call; the listener's `onEnd` is called exactly once. */
  begin(call: ExecuteOptions, listener: ExecutionListener): Execution {
    const id = this.#nextId++;
    const { endpoint, kind, timeoutMs, stream, agent, arguments: payload } = call;
    const { graceMs = this.#graceMs, abortGraceMs, isCounted } = call;
    const execution = new Execution({ id, endpoint, kind }, listener, {
      host: this,
      ...{ graceMs, abortGraceMs, isCounted, timeoutMs },
      chunks: stream && new ReceivedChunks(stream),
    });
    this.#executions.set(id, execution);
    if (call.batch) {
      this.#unsent.set(id, call.batch);
    }
    if (this.#target.hasEnded()) {
      setImmediate(() => this.#settle(id)?.displace("the worker had ended before it began"));
    } else if (agent) {
      this.#requests.begin(execution, { ...call, agent });
      this.#target.watch?.()?.callBegan(id);
    } else if (isMountName(endpoint)) {
      setImmediate(() => this.#settle(id)?.displace("the worker has no such server"));
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

  /** Goes on with a call that the worker runs already, as another node began it. */
  adopt(
    {
      id,
      endpoint,
      kind,
      graceMs = this.#graceMs,
    }: Pick<ExecuteOptions, "endpoint" | "kind" | "graceMs"> & { readonly id: number },
    timeoutMs: number,
    listener: ExecutionListener,
  ): Execution {
    const execution = new Execution({ id, endpoint, kind }, listener, {
      host: this,
      ...{ graceMs, timeoutMs },
    });
    execution.isInWorker = true;
    this.#executions.set(id, execution);
    return execution;
  }

  /** The calls under way. */
  ids(): number[] {
    return [...this.#executions.keys()];
  }

  /** Ends a call that the worker does not have, as one that did not run. */
  displace(id: number, message: string): void {
    this.#settle(id)?.displace(message);
  }

  /** Ends those of the calls that match, as ones that did not run. */
  displaceWhere(matches: (execution: Execution) => boolean, message: string): void {
    for (const execution of [...this.#executions.values()]) {
      if (matches(execution)) {
        this.displace(execution.call.id, message);
      }
    }
  }

  /** The process that ran a call has ended, and its worker goes on. */
  lose(id: number, loss: Loss): void {
    this.#settle(id)?.lose(loss);
  }

  sendAbort(id: number, reason: AbortReason): void {
    if (this.#requests.has(id)) {
      this.#settle(id)?.displace("its request was given up");
      return;
    }
    if (this.#transfers.holds(id, reason)) {
      this.#settle(id)?.displace("its files were on their way");
      return;
    }
    if (this.#unsent.has(id)) {
      this.#settle(id)?.displace("its batch was not sent yet");
      return;
    }
    this.#outbox.flush();
    this.#target.send({ type: "abort", id, reason });
  }

  sendMore(id: number, count: number): void {
    if (this.#executions.has(id)) {
      this.#target.send({ type: "more", id, count });
    }
  }

  expect(deadlineMs: number): void {
    // A call that begins in a worker that has ended is displaced at once.
    if (!this.#target.hasEnded()) {
      this.#deadlines.expect(deadlineMs);
    }
  }

  unheard({ call, abortedFor }: Execution, limitMs: number, message: string): boolean {
    if (abortedFor !== "shutdown" && this.#drain?.hold(call.id, limitMs, message)) {
      return true;
    }
    if (this.#target.isCutOff?.()) {
      // Its other calls go on, and it is told to drop this one when it is back.
      this.displace(call.id, message);
    } else {
      this.#target.sacrifice(message);
    }
    return false;
  }

  /** The worker does not answer, or answers again. */
  answering(): void {
    this.#drain?.answering();
  }

  abortAll(reason: AbortReason): void {
    for (const execution of this.#executions.values()) {
      execution.abort(reason);
    }
  }

  /** Takes a chunk of a streamed result. Returns what is wrong with a forged one. */
  chunk(chunk: Chunk): string | undefined {
    return this.#executions.get(chunk.id)?.chunk(chunk)
      ? undefined
      : `it sent chunk ${chunk.sequence} of call ${chunk.id}, which was not due`;
  }

  /**
   * Takes a result. Returns what is wrong with a forged one: an honest worker ends each
   * call exactly once, so nobody else sends the end of any other call.
   */
  finish(ended: CallResult): string | undefined {
    const isSent = this.#executions.has(ended.id) && !this.#requests.has(ended.id);
    if (!isSent || this.#transfers.isCollecting(ended.id)) {
      return `it sent a result of call ${ended.id}, which is not under way`;
    }
    if ("failure" in ended) {
      this.#settle(ended.id)?.fail(ended.failure);
      return undefined;
    }
    if (!this.#executions.get(ended.id)?.ends(ended.result)) {
      return `it ended call ${ended.id} with other chunks than it sent`;
    }
    const result = unpackPayload(ended.result);
    if (isAtHand(result)) {
      this.#settle(ended.id)?.succeed(result);
    } else {
      void this.#transfers.collect(this.#executions.get(ended.id), result);
    }
    return undefined;
  }

  /** Nothing times out any more. */
  stopWatching(): void {
    this.#deadlines.clear();
  }

  /**
   * The worker died by itself. Any of the calls that were in it may have done that, and no other:
   * one that was not sent, or has returned what is being collected.
   */
  loseAll({ cause, message }: WorkerEnd): void {
    const isInside = (execution: Execution): boolean =>
      execution.isInWorker && !this.#transfers.isCollecting(execution.call.id);
    const inside = new Set(this.#executions.values().filter(isInside));
    const loss: Loss = {
      message,
      alone: inside.size === 1,
      outOfMemory: cause === "memory" || cause === "gpu_memory",
    };
    this.endAll((execution) =>
      inside.has(execution) ? execution.lose(loss) : execution.displace(message),
    );
  }

  /** The worker has ended: `end` gives each call its end. */
  endAll(end: (execution: Execution) => void): void {
    this.#deadlines.clear();
    this.#drain?.clear();
    for (const id of [...this.#executions.keys()]) {
      const execution = this.#settle(id);
      if (execution) {
        end(execution);
      }
    }
  }

  #look(nowMs: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const execution of this.#executions.values()) {
      nextMs = Math.min(nextMs, execution.look(nowMs));
    }
    return nextMs;
  }

  #post(id: number, call: ExecuteOptions, payload: SentPayload): void {
    const { endpoint, taskId, attempt, trace, timeoutMs } = call;
    const deadlineMs = Date.now() + timeoutMs;
    const sent = { id, endpoint, taskId, attempt, arguments: packPayload(payload), deadlineMs };
    const traced = trace === undefined ? sent : { ...sent, trace };
    if (call.batch) {
      this.#sendBatch(call.batch.add(traced));
    } else {
      this.#sent(id);
      this.#outbox.post(traced);
    }
  }

  #sent(id: number): void {
    const execution = this.#executions.get(id);
    if (execution) {
      execution.isInWorker = true;
      this.#target.watch?.()?.callBegan(id);
    }
  }

  /** Sends the calls of a batch that is complete; of another one there are none. */
  #sendBatch(calls: readonly Call[]): void {
    const [first] = calls;
    if (first) {
      this.#outbox.flush();
      for (const { id } of calls) {
        this.#unsent.delete(id);
        this.#sent(id);
      }
      this.#target.send({ type: "batch", endpoint: first.endpoint, calls });
    }
  }

  /** Removes an execution from those under way, and its files. */
  #settle(id: number): Execution | undefined {
    const execution = this.#executions.take(id);
    if (execution) {
      execution.peakMemoryBytes ??= this.#target.watch?.()?.callEnded(id);
    }
    this.#transfers.ended(id);
    this.#requests.ended(id);
    this.#drain?.ended(id);
    const batch = this.#unsent.get(id);
    if (batch) {
      this.#unsent.delete(id);
      this.#sendBatch(batch.withdraw(id));
    }
    return execution;
  }
}

/** Batches calls: those of one turn of the event loop go to the worker in one message. */
class CallOutbox {
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

/**
 * A worker with calls in it that went on for a grace period after their abort. Nothing but the end
 * of the worker ends such a call, and that would end the calls beside it. So their ends are told,
 * and the worker drains: it takes no more calls while they run, and is ended when nothing else is
 * left in it, when it does not answer for a grace period, or when one of them has gone on for its
 * `abortGrace`. If they end by themselves first, the worker goes on as before.
 */

interface DrainedWorker {
  /** The number of calls under way. */
  busyness(): number;
  /** True while it does not answer. */
  isBlocked(): boolean;
  /** Kills the worker because of one execution; its other executions end as displaced. */
  sacrifice(message: string): void;
  /** `isDraining` has changed. */
  onDraining(): void;
}

class Drain {
  readonly #worker: DrainedWorker;
  readonly #graceMs: number;
  /** By the ids of the calls: when each ends the worker, at the latest. */
  readonly #limits = new Map<number, NodeJS.Timeout>();
  /** Why the worker is ended for them. */
  #message = "";
  #blocked: NodeJS.Timeout | undefined;

  constructor(graceMs: number, worker: DrainedWorker) {
    this.#graceMs = graceMs;
    this.#worker = worker;
  }

  get isDraining(): boolean {
    return this.#limits.size > 0;
  }

  /** Lets a call go on that its abort did not end. False where the worker is to be ended instead. */
  hold(callId: number, limitMs: number, message: string): boolean {
    if (this.#worker.busyness() === this.#limits.size + 1 || this.#worker.isBlocked()) {
      return false;
    }
    this.#message ||= message;
    this.#limits.set(
      callId,
      setTimeout(() => this.#worker.sacrifice(message), limitMs),
    );
    if (this.#limits.size === 1) {
      this.#worker.onDraining();
    }
    return true;
  }

  /** A call has ended. */
  ended(callId: number): void {
    if (!this.isDraining) {
      return;
    }
    clearTimeout(this.#limits.get(callId));
    if (this.#limits.delete(callId) && !this.isDraining) {
      this.clear();
      this.#worker.onDraining();
      return;
    }
    // The other ends of the same message come first.
    setImmediate(() => {
      if (this.isDraining && this.#worker.busyness() === this.#limits.size) {
        this.#worker.sacrifice(this.#message);
      }
    });
  }

  /** The worker does not answer, or answers again. */
  answering(): void {
    clearTimeout(this.#blocked);
    if (this.isDraining && this.#worker.isBlocked()) {
      this.#blocked = setTimeout(() => this.#worker.sacrifice(this.#message), this.#graceMs);
    }
  }

  /** The worker has ended, or goes on. */
  clear(): void {
    clearTimeout(this.#blocked);
    for (const limit of this.#limits.values()) {
      clearTimeout(limit);
    }
    this.#limits.clear();
    this.#message = "";
  }
}
