/**
 * The attempts that run on this node, and what their workers report: progress and lines go to the
 * task's event log, the pieces of a stream to its result, what was used to its end, and the end to
 * `queue.ts`.
 */
import { SlotMap } from "../collections/slots.ts";
import { type Log, logFailure, logLine, type ServiceLine } from "../log/log.ts";
import type {
  EndRecord,
  Execution,
  ExecutionEnd,
  ExecutionListener,
} from "../pool/calls/execution.ts";
import type { Slot } from "../pool/pool.ts";
import type { ResponseHead } from "../protocol/heads.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { CallFailure, Payload } from "../protocol/messages.ts";
import { faultOfUnit, MAX_UNIT_AMOUNT, MAX_UNITS_PER_CALL, type Units } from "../protocol/units.ts";
import type { AttemptUse } from "../storage/hosting/usage.ts";
import type { LeasedTask } from "../storage/leases.ts";
import type { Attempt, AttemptEnd, NewEvent, Storage } from "../storage/storage.ts";
import type { LineRange, TaskEventBody } from "../tasks/event.ts";
import type { Task } from "../tasks/task.ts";
import { loggedTrace } from "../tracing/context.ts";
import type { OpenSpan } from "../tracing/tracing.ts";
import { ByCell } from "./by-cell.ts";
import { attemptOf, type LaterEnd } from "./completer.ts";
import { EventRateLimit } from "./events/rate-limit.ts";
import { AttemptEvents, EventWriter } from "./events/writer.ts";
import type { AttemptPieces, PieceSource } from "./pieces/attempt-pieces.ts";
import { StreamedAttempts, type StreamedAttemptsOptions } from "./pieces/streamed-attempts.ts";

interface AttemptsOptions extends StreamedAttemptsOptions {
  readonly storage: Storage;
  readonly now: () => number;
  /** Default: its own. */
  readonly units?: UnitNames;
  /** An attempt is over; resolves with what became of its end. */
  onEnd(running: RunningAttempt, end: ExecutionEnd): Promise<EndRecord>;
}

/** The facts of a running attempt. It holds no arguments: they may be large, and the worker has them. */
export interface BegunAttempt extends LeasedTask {
  readonly endpoint: EndpointManifest;
  readonly slot: Slot;
  /** Undefined where nothing is traced. */
  readonly span?: OpenSpan | undefined;
}

/** Gives its listener to the execution of an attempt that runs already. */
export type Adopt = (listener: ExecutionListener) => Execution;

export class Attempts implements AsyncDisposable {
  readonly #running = new SlotMap<string, RunningAttempt>();
  readonly #streamed: StreamedAttempts;
  readonly #listener: AttemptListener;

  constructor(options: AttemptsOptions) {
    const { storage, log, now, units = new UnitNames(log), changes, onEnd } = options;
    const onStored = (taskId: string): void => {
      changes.announceMore(taskId);
      changes.hear({ taskId, live: true });
    };
    this.#streamed = new StreamedAttempts(options);
    this.#listener = {
      log,
      now,
      units,
      events: new ByCell(() => new EventWriter({ storage, log, onStored })),
      onEnd: async (running, end) => {
        const record = await onEnd(running, end);
        // Where its end was given up, nobody else has said so.
        this.forget(running.begun.task);
        return record;
      },
    };
  }

  /** Runs a claimed task with these arguments in its slot. */
  begin(begun: BegunAttempt, payload: Payload): void {
    const { task, endpoint, slot, span } = begun;
    const { taskId, attempt } = task;
    const { trace } = span ?? task;
    const running = new RunningAttempt(begun, this.#listener);
    if (endpoint.stream) {
      running.pieces = this.#streamed.begin({ attempt: attemptOf(begun), endpoint }, running);
    }
    running.execution = slot.execute({ arguments: payload, taskId, attempt, trace }, running);
    this.#running.set(taskId, running);
  }

  /** Goes on with an attempt that another node began, and which its worker still runs. */
  adopt(begun: BegunAttempt, adopt: Adopt): void {
    const running = new RunningAttempt(begun, this.#listener);
    running.execution = adopt(running);
    this.#running.set(begun.task.taskId, running);
  }

  /**
   * The end of an attempt is recorded, or somebody else has ended it. Until then it stands as
   * running: callers that wait for it would otherwise ask the storage, which knows no more.
   */
  forget({ taskId, attempt }: Pick<Attempt, "taskId" | "attempt">): void {
    if (this.get(taskId)?.attempt === attempt) {
      this.#running.take(taskId);
    }
  }

  /** A task that runs here, or whose end is being recorded, as it was claimed. */
  get(taskId: string): Task | undefined {
    return this.#running.get(taskId)?.begun.task;
  }

  /** True while the attempt runs here, or its end is being recorded. */
  has({ taskId, attempt }: Attempt): boolean {
    return this.get(taskId)?.attempt === attempt;
  }

  /** The leases under which attempts run here. */
  leaseIds(): string[] {
    return [...new Set(this.#running.values().map(({ begun }) => begun.leaseId))];
  }

  /** Aborts a task that runs here; false when it does not. */
  abort(taskId: string): boolean {
    const running = this.#running.get(taskId);
    running?.cancel();
    return running !== undefined;
  }

  /** What to record of an attempt: of one that streams, once its pieces are stored. */
  toRecord({ pieces }: RunningAttempt, end: AttemptEnd): AttemptEnd | LaterEnd {
    return pieces ? this.#streamed.end(pieces, end) : end;
  }

  /** Stops offering events to a storage that does not answer. */
  giveUp(): void {
    for (const events of this.#listener.events.all()) {
      events[Symbol.dispose]();
    }
  }

  /** Call it when all ends are recorded. Resolves when no event waits, or is offered any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#streamed[Symbol.dispose]();
    await Promise.all(this.#listener.events.all().map((events) => events.settled()));
  }
}

/** What all attempts report to. */
interface AttemptListener {
  readonly log: Log;
  readonly now: () => number;
  readonly events: ByCell<EventWriter>;
  readonly units: UnitNames;
  onEnd(running: RunningAttempt, end: ExecutionEnd): Promise<EndRecord>;
}

/** A running attempt. One object takes all its reports, because there are as many as tasks. */
export class RunningAttempt implements ExecutionListener, PieceSource {
  readonly begun: BegunAttempt;
  readonly startedMs = performance.now();
  /** Set when it has begun. */
  execution: Execution | undefined;
  /** Set before it begins, for an endpoint that streams. */
  pieces: AttemptPieces | undefined;
  readonly #listener: AttemptListener;
  readonly #meter: UsageMeter;
  /** Made on first use, as the next one: few functions report anything. */
  #events: AttemptEvents | undefined;
  #rateLimit: EventRateLimit | undefined;
  /** Its end may still have to be recorded. */
  #ended = false;
  /** Why no more of its pieces are taken. */
  #refused: CallFailure | undefined;

  constructor(begun: BegunAttempt, listener: AttemptListener) {
    this.begun = begun;
    this.#listener = listener;
    this.#meter = new UsageMeter(begun.slot, listener.units);
  }

  /** What it used; undefined where its function has not begun. Call it once, at its end. */
  used(end: ExecutionEnd): AttemptUse | undefined {
    const used = { ...this.#meter.end(), peakMemoryBytes: this.execution?.peakMemoryBytes };
    return end.kind === "displaced" && end.unbegun ? undefined : used;
  }

  cancel(): void {
    if (!this.#ended) {
      this.execution?.abort("cancelled");
    }
  }

  /** Takes what it reported and no write has stored; undefined when it reported nothing. */
  get takeEvents(): (() => Promise<readonly NewEvent[]>) | undefined {
    const events = this.#events;
    const { taskId } = this.begun.task;
    return events && (() => this.#listener.events.of(taskId).takeRest(events));
  }

  onEnd(end: ExecutionEnd): Promise<EndRecord> {
    this.#ended = true;
    const failure = end.kind === "aborted" ? this.#refused : undefined;
    return this.#listener.onEnd(this, failure ? { kind: "failure", failure } : end);
  }

  /** Says in the node's log, or in the task's, why the attempt ended if it did not end well. */
  logEnd(end: ExecutionEnd): void {
    if (end.kind === "failure") {
      logFailure(this.#listener.log, end.failure, this.#logged, "a task's function failed");
    }
    if (end.kind === "lost") {
      const message = `the worker ended while this ran: ${end.message}`;
      this.#report({ kind: "log", level: "error", message });
    }
  }

  onChunk(piece: string | Uint8Array): void {
    this.pieces?.add(piece);
  }

  onResponse(response: ResponseHead): void {
    if (this.pieces) {
      this.pieces.response = response;
    }
  }

  stored(count: number): void {
    this.execution?.more(count);
  }

  refuse(failure: CallFailure | undefined): void {
    this.#refused = failure;
    this.cancel();
  }

  onProgress(fraction: number, message: string): void {
    this.#rateLimit ??= new EventRateLimit();
    if (this.#rateLimit.admitProgress(fraction, performance.now())) {
      this.#report({ kind: "progress", fraction, message });
    }
  }

  onUsage(units: Units): void {
    this.#meter.report(units);
  }

  onLog(line: ServiceLine): void {
    logLine(this.#listener.log, line, this.#logged);
    this.#rateLimit ??= new EventRateLimit();
    const { skipped = 0, ...said } = line;
    const { line: number, displaces } = this.#rateLimit.nextLine(skipped);
    this.#report({ kind: "log", line: number, ...said }, displaces);
  }

  #report(body: TaskEventBody, displaces?: LineRange): void {
    const { now, events } = this.#listener;
    this.#events ??= new AttemptEvents(attemptOf(this.begun));
    const event = { timeMs: now(), body, ...(displaces && { displaces }) };
    events.of(this.begun.task.taskId).add(this.#events, event);
  }

  get #logged(): object {
    const { task, slot } = this.begun;
    const { endpoint, taskId, attempt, trace } = task;
    return { endpoint, taskId, attempt, ...loggedTrace(trace), ...slot.ranIn };
  }
}

// What calls and attempts use: measured from their beginning to their end.

/** Units of a deployment that a node tells apart: each is a row for each day, endpoint and token. */
const MAX_UNITS_PER_DEPLOYMENT = 32;

/** The names of the units that functions of a deployment have reported. */
export class UnitNames {
  readonly #names = new Set<string>();
  readonly #log: Log;
  #isTold = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** False for a name that is one too many. */
  admit(name: string): boolean {
    if (this.#names.has(name)) {
      return true;
    }
    if (this.#names.size < MAX_UNITS_PER_DEPLOYMENT) {
      this.#names.add(name);
      return true;
    }
    if (!this.#isTold) {
      this.#isTold = true;
      const most = `functions report more than ${MAX_UNITS_PER_DEPLOYMENT} units`;
      this.#log.warn({ unit: name }, `${most}: further ones are not counted`);
    }
    return false;
  }
}

/** Measures one call, or one attempt. */
export class UsageMeter {
  readonly #names: UnitNames;
  readonly #gpuMs: (() => number) | undefined;
  /** Made on first use: few functions report any. */
  #units: Map<string, number> | undefined;

  constructor(slot: Pick<Slot, "gpuTime">, names: UnitNames) {
    this.#names = names;
    this.#gpuMs = slot.gpuTime?.begin();
  }

  /** Adds what the function has reported; what does not belong there is left out. */
  report(units: Units): void {
    const sums = this.#units ?? new Map<string, number>();
    this.#units = sums;
    for (const [name, amount] of Object.entries(units)) {
      const before = sums.get(name);
      const hasRoom = before !== undefined || sums.size < MAX_UNITS_PER_CALL;
      if (hasRoom && faultOfUnit(name, amount) === undefined && this.#names.admit(name)) {
        sums.set(name, Math.min(MAX_UNIT_AMOUNT, (before ?? 0) + amount));
      }
    }
  }

  /** What was used; call it once, at the end. */
  end(): AttemptUse {
    const gpuMs = this.#gpuMs?.() ?? 0;
    return this.#units?.size ? { gpuMs, units: Object.fromEntries(this.#units) } : { gpuMs };
  }
}
