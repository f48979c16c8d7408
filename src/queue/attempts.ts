/**
 * The running attempts of one deployment on this node. Each begins with a
 * claimed task and a slot, and ends when the storage has recorded its outcome
 * (`completer.ts`).
 */

import { SlotMap } from "../collections/slots.ts";
import { logFailure, logLine, type ServiceLine } from "../log/log.ts";
import type {
  EndRecord,
  Execution,
  ExecutionEnd,
  ExecutionListener,
} from "../pool/calls/execution.ts";
import type { Slot } from "../pool/pool.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { CallFailure } from "../protocol/messages.ts";
import type { LeasedTask } from "../storage/leases.ts";
import type { Attempt, AttemptEnd, ClaimedTask, Storage } from "../storage/storage.ts";
import type { LineRange, TaskEventBody } from "../tasks/event.ts";
import { interrupted } from "../tasks/failure.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";
import { loggedTrace } from "../tracing/context.ts";
import type { DeploymentTracing } from "../tracing/tracing.ts";
import { Completer, type CompleterOptions } from "./completer.ts";
import { RunTimes } from "./estimate.ts";
import { AttemptEvents, EventWriter } from "./events/writer.ts";
import { outcomeOf } from "./outcome.ts";
import { StreamedAttempts, type StreamedAttemptsOptions } from "./pieces/streamed-attempts.ts";
import { type AttemptListener, RunningAttempt } from "./running-attempt.ts";
import { attemptEnd, waited } from "./traced.ts";

interface AttemptsOptions extends CompleterOptions, StreamedAttemptsOptions {
  readonly storage: Storage;
  /** Default: nothing is traced. */
  readonly tracing?: DeploymentTracing | undefined;
  /** A slot is free again. */
  onSlotFree(): void;
}

export class Attempts {
  readonly runTimes = new RunTimes();
  readonly #options: AttemptsOptions;
  readonly #running = new SlotMap<string, RunningAttempt>();
  readonly #completer: Completer;
  readonly #events: EventWriter;
  readonly #streamed: StreamedAttempts;
  readonly #listener: AttemptListener = {
    ended: (running, end) => this.#ended(running, end),
    logged: (running, line) => this.#logged(running, line),
    reported: (running, ...event) => this.#event(running, ...event),
  };

  constructor(options: AttemptsOptions) {
    this.#options = options;
    const { storage, changes, log } = options;
    this.#completer = new Completer(options);
    const onStored = (taskId: string): void => changes.publish(taskId);
    this.#events = new EventWriter({ storage, log, onStored });
    this.#streamed = new StreamedAttempts(options);
  }

  /** A task that runs here, as it was claimed. */
  get(taskId: string): Task | undefined {
    return this.#running.get(taskId)?.begun.task;
  }

  /** True while an attempt runs here, and until its end is recorded. */
  knows(attempt: Attempt): boolean {
    return (
      this.get(attempt.taskId)?.attempt === attempt.attempt || this.#completer.isUnderWay(attempt)
    );
  }

  /** Runs a claimed task in a slot, and releases the slot when the attempt ends. */
  start(claimed: ClaimedTask, endpoint: EndpointManifest, slot: Slot): void {
    const { task, leaseId } = claimed;
    const { tracing } = this.#options;
    if (tracing) {
      this.#traceWait(tracing, task);
    }
    const span = tracing?.attemptBegan({
      endpoint: endpoint.name,
      kind: "task",
      parent: task.trace,
      taskId: task.taskId,
      attempt: task.attempt,
    });
    const begun = { task, leaseId, endpoint, slot, span };
    const running = new RunningAttempt(begun, this.#listener);
    if (endpoint.stream) {
      running.pieces = this.#streamed.begin({ attempt: attemptOf(claimed), endpoint }, running);
    }
    running.begin(claimed.arguments);
    this.#running.set(task.taskId, running);
    this.runTimes.begin(endpoint.name);
    this.#options.changes.publish(task.taskId, task);
    const waitSeconds = ((task.startedAtMs ?? task.runAtMs) - task.runAtMs) / 1_000;
    this.#options.metricsOf?.(task.deploymentId)?.taskStarted(endpoint.name, waitSeconds);
  }

  /**
   * Goes on with an attempt that another node began. `adopt` gives its listener to the execution,
   * which its worker still runs.
   */
  adopt(
    adopted: LeasedTask,
    { endpoint, slot }: { readonly endpoint: EndpointManifest; readonly slot: Slot },
    adopt: (listener: ExecutionListener) => Execution,
  ): void {
    const { task, leaseId } = adopted;
    const running = new RunningAttempt(
      { task, leaseId, endpoint, slot, span: undefined },
      this.#listener,
    );
    running.adopt(adopt);
    this.#running.set(task.taskId, running);
    this.#options.changes.publish(task.taskId, task);
  }

  /** Returns a claimed task to the queue without having run it. */
  giveBack(attempt: Attempt): void {
    void this.#completer.record(attempt, {
      status: "queued",
      failed: false,
      failure: interrupted("it was returned before it began"),
    });
  }

  /** Fails a claimed task without having run it. */
  refuse(claimed: ClaimedTask, failure: TaskFailure): void {
    this.#options.log.info(logged(claimed.task), `a task cannot run: ${failure.message}`);
    void this.#completer.record(attemptOf(claimed), { status: "failure", failure });
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

  /** See `Completer`. */
  async settled(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.#events[Symbol.dispose](), withinMs);
    await this.#completer.settled(withinMs);
    this.#streamed[Symbol.dispose]();
    await this.#events.settled();
    clearTimeout(timer);
  }

  /** See `Completer`. */
  recorded(leaseId?: string): Promise<void> {
    return this.#completer.recorded(leaseId);
  }

  #ended(running: RunningAttempt, end: ExecutionEnd): Promise<EndRecord> {
    const { begun, startedMs, pieces } = running;
    const { task, endpoint, slot, span } = begun;
    slot.release();
    this.#running.take(task.taskId);
    const runMs = performance.now() - startedMs;
    this.runTimes.add(endpoint.name, runMs);
    this.#options.onSlotFree();
    const attempt = attemptOf(begun);
    if (end.kind === "failure") {
      this.#logFailure({ ...logged(task), ...slot.ranIn }, end.failure);
    }
    if (end.kind === "lost") {
      this.#event(running, { kind: "log", level: "error", message: lostMessage(end.message) });
    }
    const outcome = this.#outcome(end, task, endpoint);
    span?.end(attemptEnd(end, outcome));
    const recorded = pieces ? this.#streamed.end(pieces, outcome) : outcome;
    const { events } = running;
    const takeEvents = events && (() => this.#events.takeRest(events));
    const ran = { runSeconds: runMs / 1_000, trace: task.trace, takeEvents, alone: slot.alone };
    return this.#completer.record(attempt, recorded, ran);
  }

  #logged({ begun }: RunningAttempt, line: ServiceLine): void {
    const { task, slot } = begun;
    logLine(this.#options.log, line, { ...logged(task), ...slot.ranIn });
  }

  #outcome(end: ExecutionEnd, task: Task, endpoint: EndpointManifest): AttemptEnd {
    return outcomeOf(end, { task, endpoint, nowMs: this.#options.now(), random: Math.random() });
  }

  #logFailure(facts: object, failure: CallFailure): void {
    logFailure(this.#options.log, failure, facts, "a task's function failed");
  }

  #traceWait(tracing: DeploymentTracing, task: Task): void {
    const { storage, now, log } = this.#options;
    waited(tracing, task, { storage, nowMs: now() }).catch((err: unknown) =>
      log.debug({ err, ...logged(task) }, "when a task came back to the queue could not be read"),
    );
  }

  #event(running: RunningAttempt, body: TaskEventBody, displaces?: LineRange): void {
    running.events ??= new AttemptEvents(attemptOf(running.begun));
    const event = { timeMs: this.#options.now(), body, ...(displaces && { displaces }) };
    this.#events.add(running.events, event);
  }
}

export function attemptOf({ task, leaseId }: LeasedTask): Attempt {
  const { deploymentId, taskId, attempt } = task;
  return { deploymentId, taskId, leaseId, attempt };
}

/** The log fields of a running task. */
function logged({ endpoint, taskId, attempt, trace }: Task): object {
  return { endpoint, taskId, attempt, ...loggedTrace(trace) };
}

function lostMessage(reason: string): string {
  return `the worker ended while this ran: ${reason}`;
}
