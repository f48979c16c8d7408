/**
 * A worker on another machine, over a stream that may break and come back.
 *
 *   connected     the stream is open: calls are assigned, ends arrive
 *   disconnected  the stream broke: nothing is assigned, calls go on at the worker, and the
 *                 worker may come back with them, until nothing was heard for `silenceMs`
 *   ended         it said that it ends, was silent for too long, or broke the protocol: its calls
 *                 are cut off, which is no fault of theirs, and its lease is closed
 *   parted        this node ends: the worker goes on with its tasks, and another node, or this
 *                 one after its restart, adopts its lease
 *
 * A broken stream proves nothing about the worker. Its silence does, because a worker ends its
 * calls before the silence is over (`proto/tessera/v1/worker.proto`).
 *
 * A call ends exactly once here. A result is acknowledged when its end is recorded, and may come
 * several times until then; one of a call that has ended already is acknowledged as stale.
 */
import type { EndpointManifest, MountManifest, ServiceManifest } from "../../protocol/manifest.ts";
import type { Call, Chunk, NodeMessage } from "../../protocol/messages.ts";
import { isMountName } from "../../service/mounts.ts";
import type { MachineLoad } from "../../storage/hosting/nodes.ts";
import {
  ABORT_GRACE_MS,
  Capacity,
  type ExecuteOptions,
  type Execution,
  type ExecutionListener,
} from "../calls/execution.ts";
import { MAX_LAST_ANSWER_MS, type MountAgent } from "../calls/mount-agents.ts";
import type { TransferHost } from "../calls/transfers.ts";
import { WorkerCalls } from "../calls/worker-calls.ts";
import { GpuTime } from "../gpus/gpu-time.ts";
import type { WorkerUsage } from "../usage.ts";
import type { Worker, WorkerLease, WorkerMachine } from "../worker.ts";
import type { WorkerEnd } from "../worker-end.ts";
import type { CountsReceiver } from "../worker-options.ts";
import { Acknowledgements, acknowledging } from "./acknowledgements.ts";
import type { HeldCall, RemoteResult, RemoteStream } from "./messages.ts";
import { RemoteMounts } from "./mounts.ts";
import { RemoteTransfers, type RemoteTransfersOptions } from "./transfers.ts";
import type { Tunnel } from "./tunnel.ts";
import { Turns } from "./turns.ts";

/**
 * How much longer than its grace period an aborted call may take to end: the worker ends it by
 * force, and its answer has to arrive.
 */
const ABORT_ANSWER_MS = 5_000;

/** How long a worker has to say that a call has arrived. */
const ACCEPT_TIMEOUT_MS = 5_000;

/** How a call ends that does not hear its abort. */
type Ending = Pick<ExecuteOptions, "graceMs" | "abortGraceMs" | "isCounted">;

export class RemoteWorker implements Worker {
  readonly id: string;
  readonly lease: WorkerLease;
  readonly capacity = new Capacity();
  readonly gpuTime: GpuTime | undefined;
  readonly pid = undefined;
  readonly isSlow = false;
  fault: string | undefined;
  readonly transfers: RemoteTransfers;
  /** Of what its tunnels are sent. */
  readonly turns = new Turns();
  readonly #options: RemoteWorkerOptions;
  readonly #executions: WorkerCalls;
  readonly #exited = Promise.withResolvers<WorkerEnd>();
  readonly counts: CountsReceiver | undefined;
  #stream: RemoteStream | undefined;
  /** Of the stream; undefined without one, and without mounted servers that it serves. */
  #mounts: RemoteMounts | undefined;
  #servedMount = false;
  /** Connections to mounted servers that it was asked for. */
  #asked = 0;
  /** Ends what mounted servers have not answered by then. */
  #lastAnswer: NodeJS.Timeout | undefined;
  /** How many calls of each endpoint it runs at a time. */
  #slots: ReadonlyMap<string, number> = new Map();
  readonly #assigned = new AssignedCalls();
  readonly #acks = new Acknowledgements(
    (ids, stale) => this.#stream?.send({ type: "ack", ids, stale }),
    () => this.#finishWhenIdle(),
  );
  #heardMs = performance.now();
  /** When it last said that it takes no calls, as it does when its process has ended. */
  #withdrawnMs = Number.NEGATIVE_INFINITY;
  #watch: NodeJS.Timeout;
  #usage: WorkerUsage = { cpuMs: 0, memoryBytes: 0 };
  #endedFor: string | undefined;
  #sacrificed = false;
  #load: MachineLoad | undefined;
  #isDrained = false;
  #isStopping = false;
  #isParting = false;
  #isParted = false;

  constructor(options: RemoteWorkerOptions) {
    const { id, lease, graceMs, silenceMs, manifest, held = [], lastCall = 0, gpus = 0 } = options;
    this.id = id;
    this.lease = lease;
    this.gpuTime = gpus > 0 ? new GpuTime(gpus) : undefined;
    this.#options = options;
    const transfers: RemoteTransfers[] = [];
    this.#executions = new WorkerCalls(
      {
        graceMs: graceMs + ABORT_ANSWER_MS,
        mounts: options,
        firstId: Math.max(lastCall, ...held.map((call) => call.id)) + 1,
        transfers: (host: TransferHost) => {
          const made = new RemoteTransfers(options, host);
          transfers.push(made);
          return made;
        },
      },
      {
        hasEnded: () => this.ended,
        send: (message) => this.#send(message),
        sacrifice: (message) => {
          this.#sacrificed = true;
          this.kill(message);
        },
        isBlocked: () => false,
        isCutOff: () => this.isBlocked,
        hasRestartedSince: (ms) => this.#withdrawnMs > ms,
      },
    );
    this.transfers = transfers[0] as RemoteTransfers;
    this.counts = options.countsOf?.(manifest);
    this.#watch = setInterval(() => this.#look(), Math.min(1_000, silenceMs / 5));
    this.#watch.unref();
  }

  get revision(): number | undefined {
    return this.#options.revision;
  }

  get busyness(): number {
    return this.#executions.size + this.capacity.mounted - this.#executions.requests;
  }

  /** False while the service does not run at the worker, and while its machine is drained. */
  get loaded(): boolean {
    return this.#slots.size > 0 && !this.#isDrained && !this.#isStopping && !this.ended;
  }

  /** Whether its machine is drained: it takes no new calls, and stays. */
  get isDraining(): boolean {
    return this.#isDrained;
  }

  /** Whether its stream is broken, until it comes back. One that blocks its loop offers no slots. */
  get isBlocked(): boolean {
    return this.#stream === undefined && !this.ended;
  }

  get machine(): WorkerMachine {
    return {
      ...this.#options.machine,
      load: this.#load,
      silentMs: performance.now() - this.#heardMs,
      isDrained: this.#isDrained,
    };
  }

  get used(): boolean {
    return this.#executions.begun > 0 || this.#servedMount;
  }

  get stopping(): boolean {
    return this.#isStopping;
  }

  get ended(): boolean {
    return this.#endedFor !== undefined;
  }

  get exited(): Promise<WorkerEnd> {
    return this.#exited.promise;
  }

  get outputEnded(): Promise<void> {
    return this.exited.then(() => undefined);
  }

  get isParted(): boolean {
    return this.#isParted;
  }

  usage(): WorkerUsage {
    return this.#usage;
  }

  load(): Promise<ServiceManifest> {
    return Promise.resolve(this.#options.manifest);
  }

  runs({ name }: Pick<EndpointManifest, "name">): boolean {
    return this.#options.endpoints?.has(name) !== false;
  }

  freeSlots(endpoint: EndpointManifest): number {
    if (!this.loaded || this.#stream === undefined || !this.runs(endpoint)) {
      return 0;
    }
    if (this.capacity.isClosed) {
      return 0;
    }
    const slots = Math.min(this.#slots.get(endpoint.name) ?? 0, endpoint.concurrency);
    return Math.max(0, slots - this.capacity.taken(endpoint));
  }

  agentOf(mount: string): MountAgent | undefined {
    this.#servedMount = true;
    return this.#mounts?.agentOf(mount);
  }

  /** It brings a connection to a mounted server. False where nobody waits for it. */
  takeTunnel(id: number, tunnel: Tunnel): boolean {
    return this.#mounts?.take(id, tunnel) === true;
  }

  execute(call: ExecuteOptions, listener: ExecutionListener): Execution {
    if (call.agent) {
      // It knows nothing of this call.
      return this.#executions.begin(call, listener);
    }
    let id = 0;
    const execution = this.#executions.begin(
      { ...call, ...this.#graces(call) },
      acknowledging(listener, (recorded) => this.#ended(id, recorded)),
    );
    id = execution.call.id;
    return execution;
  }

  /** Goes on with a call that it runs already. */
  adopt(call: HeldCall & Ending, timeoutMs: number, listener: ExecutionListener): Execution {
    const { id, endpoint } = call;
    return this.#executions.adopt(
      { id, endpoint, kind: "task", ...this.#graces(call) },
      timeoutMs,
      acknowledging(listener, (recorded) => this.#ended(id, recorded)),
    );
  }

  /**
   * How long the worker may take to tell the end of a call after its abort. Where it drains for one
   * that is counted, it tells that end when it is there, after its own grace and that of the drain.
   */
  #graces({ abortGraceMs = ABORT_GRACE_MS, isCounted = false }: Ending): Ending {
    const { graceMs } = this.#options;
    const answerMs = (isCounted ? abortGraceMs : 0) + ABORT_ANSWER_MS;
    return {
      graceMs: graceMs + answerMs,
      abortGraceMs: Math.max(graceMs, abortGraceMs) + answerMs,
    };
  }

  execution(id: number): Execution | undefined {
    return this.#executions.get(id);
  }

  release(endpoint: EndpointManifest): void {
    this.capacity.giveBack(endpoint);
    this.#finishWhenIdle();
  }

  /** It has a last time for answers that have begun. */
  retire(): void {
    if (this.#mounts !== undefined && this.#lastAnswer === undefined) {
      this.#stream?.send({ type: "retire" });
      const cutOff = (): void => this.#mounts?.[Symbol.dispose]();
      this.#lastAnswer = setTimeout(cutOff, MAX_LAST_ANSWER_MS).unref();
    }
  }

  async stop(withinMs?: number): Promise<void> {
    this.#isStopping = true;
    this.retire();
    if (withinMs === undefined) {
      this.#stream?.send({ type: "drain", reason: "the deployment has another revision" });
      this.#finishWhenIdle();
      await this.exited;
      return;
    }
    this.#isParting = true;
    const timer = setTimeout(() => this.#part(), withinMs);
    this.#finishWhenIdle();
    await this.exited;
    clearTimeout(timer);
  }

  discard(reason: string): void {
    this.kill(reason);
  }

  kill(reason: string): void {
    if (this.ended) {
      return;
    }
    this.#end(reason);
    this.#executions.endAll((execution) =>
      this.#sacrificed ? execution.displace(reason) : execution.cutOff(reason),
    );
  }

  // What the worker does.

  /** Its stream is open. One that was open before ends. */
  connect(stream: RemoteStream): void {
    this.#stream?.end("the session goes on over another stream");
    this.#mounts?.[Symbol.dispose]();
    this.#stream = stream;
    const { mounts } = this.#options;
    this.#mounts =
      mounts &&
      new RemoteMounts({
        mounts,
        send: (message) => stream.send(message),
        nextId: () => ++this.#asked,
      });
    this.heard();
    if (this.#isStopping) {
      stream.send({ type: "drain", reason: "the deployment has another revision" });
    }
    for (const id of this.#executions.ids()) {
      const reason = this.#executions.get(id)?.abortedFor;
      if (reason !== undefined) {
        stream.send({ type: "abort", id, reason });
      }
    }
    this.#options.onCapacity();
  }

  /** Its stream broke. What streams, or is a request, cannot be resumed, and ends as displaced. */
  disconnect(stream: RemoteStream): void {
    if (this.#stream !== stream) {
      return;
    }
    this.#stream = undefined;
    this.#mounts?.[Symbol.dispose]();
    this.#mounts = undefined;
    const isBroken = ({ isStreamed, call }: Execution) => isStreamed || isMountName(call.endpoint);
    this.#executions.displaceWhere(isBroken, "its stream broke");
    if (this.#isStopping && this.busyness === 0) {
      this.kill("it ended");
    }
  }

  /** It came back with these calls: returns those that go on. */
  resume(held: readonly HeldCall[]): number[] {
    const there = new Set(held.map(({ id }) => id));
    this.#assigned.arrived(there);
    this.#executions.displaceWhere(
      ({ call }) => !there.has(call.id),
      "its worker came back without it",
    );
    this.heard();
    return held.flatMap(({ id }) =>
      this.#executions.get(id) !== undefined || this.#acks.awaits(id) ? [id] : [],
    );
  }

  /** Something came from it. */
  heard(): void {
    this.#heardMs = performance.now();
  }

  offers(slots: ReadonlyMap<string, number>, fault?: string): void {
    if (slots.size === 0) {
      this.#withdrawnMs = performance.now();
    }
    this.#slots = slots;
    this.fault = fault;
    this.#options.onCapacity();
  }

  accepted(ids: readonly number[]): void {
    this.#assigned.arrived(ids);
  }

  measured(usage: WorkerUsage, load?: MachineLoad): void {
    this.#usage = usage;
    this.#load = load;
  }

  /** Its machine is drained, or taken back. */
  drained(isDrained: boolean): void {
    if (this.#isDrained !== isDrained) {
      this.#isDrained = isDrained;
      this.#options.onCapacity();
    }
  }

  /** It takes no more calls. */
  drains(): void {
    this.#isStopping = true;
    this.retire();
    this.#finishWhenIdle();
  }

  /** Takes the end of a call. Returns what is wrong with a forged one. */
  finish(result: RemoteResult): string | undefined {
    const { id } = result;
    if (this.#acks.awaits(id)) {
      return undefined;
    }
    const execution = this.#executions.get(id);
    if (execution === undefined) {
      if (id > this.#executions.begun) {
        return `it sent a result of call ${id}, which was never assigned`;
      }
      this.#acks.acknowledge(id, { isStale: true });
      return undefined;
    }
    execution.peakMemoryBytes = result.peakMemoryBytes;
    if (result.units) {
      execution.usage(result.units);
    }
    if ("lost" in result) {
      const { lost: message, besideOthers, outOfMemory } = result;
      this.#executions.lose(id, { message, alone: !besideOthers, outOfMemory });
    } else if ("displaced" in result || "aborted" in result) {
      this.#executions.displace(id, "displaced" in result ? result.displaced : result.aborted);
    } else {
      return this.#executions.finish(result);
    }
    return undefined;
  }

  /** Takes a piece of a streamed result. Returns what is wrong with a forged one. */
  chunk(chunk: Chunk): string | undefined {
    // One that was aborted or displaced may still send.
    return this.#executions.get(chunk.id) === undefined && chunk.id <= this.#executions.begun
      ? undefined
      : this.#executions.chunk(chunk);
  }

  #send(message: NodeMessage): void {
    switch (message.type) {
      case "calls":
      case "batch":
        this.#assign(message.calls, message.type === "batch");
        break;
      case "abort":
      case "more":
        this.#stream?.send(message);
        break;
      default:
    }
  }

  #assign(calls: readonly Call[], together: boolean): void {
    const stream = this.#stream;
    if (stream === undefined) {
      for (const { id } of calls) {
        setImmediate(() => this.#executions.displace(id, "its stream broke before it began"));
      }
      return;
    }
    this.#assigned.assigned(calls.map(({ id }) => id));
    stream.send({ type: "calls", calls, together });
  }

  #ended(id: number, recorded: Parameters<Acknowledgements["ended"]>[1]): void {
    this.#assigned.arrived([id]);
    this.#acks.ended(id, recorded);
  }

  #look(): void {
    const nowMs = performance.now();
    if (nowMs - this.#heardMs >= this.#options.silenceMs) {
      this.kill(`nothing was heard of it for ${Math.round(this.#options.silenceMs / 1_000)} s`);
      return;
    }
    const stream = this.#stream;
    // Cut off, it may have them: when it is back, it says which.
    for (const id of stream ? this.#assigned.takeOverdue(nowMs) : []) {
      stream?.send({ type: "abort", id, reason: "shutdown" });
      this.#executions.displace(id, "its worker did not say that it had arrived");
    }
  }

  #finishWhenIdle(): void {
    if (this.#isParting) {
      const ids = this.#executions.ids();
      const outlive = ids.every((id) => outlivesNode(this.#executions.get(id)));
      if (this.capacity.mounted === 0 && outlive) {
        this.#part();
      }
      return;
    }
    if (this.#isStopping && this.capacity.idle && this.busyness === 0 && this.#acks.isComplete) {
      this.kill("it ended");
    }
  }

  /** The node ends: tasks go on at the worker, and calls of apis end here. */
  #part(): void {
    if (this.ended) {
      return;
    }
    this.#isParted = true;
    this.#executions.displaceWhere((execution) => !outlivesNode(execution), "the node ends");
    this.#end("the node ends");
  }

  #end(reason: string): void {
    this.#endedFor = reason;
    clearInterval(this.#watch);
    clearTimeout(this.#lastAnswer);
    this.#mounts?.[Symbol.dispose]();
    this.#mounts = undefined;
    this.#executions.stopWatching();
    this.counts?.end();
    this.#acks.flush();
    this.#stream?.end(reason);
    this.#stream = undefined;
    const cause = this.#sacrificed ? "unresponsive" : "crashed";
    this.#exited.resolve({ cause, message: reason });
  }
}

/** Tasks of functions go on at their worker when their node ends; the others live by the node. */
function outlivesNode(execution: Execution | undefined): boolean {
  return execution?.call.kind === "task" && !isMountName(execution.call.endpoint);
}

/** Calls that were assigned to a worker, until it says that they have arrived. */
class AssignedCalls {
  /** When each was assigned, by `performance.now`. */
  readonly #sinceMs = new Map<number, number>();

  assigned(ids: Iterable<number>): void {
    const nowMs = performance.now();
    for (const id of ids) {
      this.#sinceMs.set(id, nowMs);
    }
  }

  /** They have arrived, or ended. */
  arrived(ids: Iterable<number>): void {
    for (const id of ids) {
      this.#sinceMs.delete(id);
    }
  }

  /** Removes and returns those that should have arrived by now. */
  takeOverdue(nowMs: number): number[] {
    const overdue = [...this.#sinceMs].flatMap(([id, sinceMs]) =>
      nowMs - sinceMs >= ACCEPT_TIMEOUT_MS ? [id] : [],
    );
    this.arrived(overdue);
    return overdue;
  }
}

/** What a worker on another machine is made with. */
interface RemoteWorkerOptions extends RemoteTransfersOptions {
  readonly id: string;
  readonly machine: WorkerMachine;
  readonly revision: number | undefined;
  readonly manifest: ServiceManifest;
  /** The mounted servers that it serves; undefined: none. */
  readonly mounts?: readonly MountManifest[] | undefined;
  readonly lease: WorkerLease;
  /** Time between an abort and the end of a call by force, at the worker. */
  readonly graceMs: number;
  /** After this silence it is lost. */
  readonly silenceMs: number;
  /** The endpoints whose calls are for its machine, by name. Default: all. */
  readonly endpoints?: ReadonlySet<string> | undefined;
  /** How many GPUs it has; below 1: that part of one. Default: none. */
  readonly gpus?: number;
  /** Calls that it runs already, which another node began. */
  readonly held?: readonly HeldCall[];
  /** The highest number of a call that another node gave it. Default: none. */
  readonly lastCall?: number;
  /** Slots became free. */
  onCapacity(): void;
  /** Returns the receiver of the service's metrics. Default: none. */
  readonly countsOf?: ((manifest: ServiceManifest) => CountsReceiver) | undefined;
}
