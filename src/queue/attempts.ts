/**
 * The attempts that run on this node: each begins with a claimed task and a
 * slot, and ends with what the storage records of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../errors.ts";
import type { TaskOutcome } from "../metrics/deployment.ts";
import type { MetricsOf } from "../metrics/metrics.ts";
import type { EndpointManifest } from "../sdk/manifest.ts";
import type { CallFailure } from "../sdk/protocol.ts";
import type { Attempt, AttemptEnd, ClaimedTask, Storage } from "../storage/storage.ts";
import type { TaskEventBody } from "../tasks/event.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";
import type { Changes } from "./changes.ts";
import { RunTimes } from "./estimate.ts";
import { EventPace } from "./event-pace.ts";
import { type Log, logLine } from "./log.ts";
import { outcomeOf } from "./outcome.ts";
import type { Execution, ExecutionEnd } from "./pool/execution.ts";
import type { Slot } from "./pool/pool.ts";
import type { RecentTasks } from "./recent.ts";

/** Pause before the end of an attempt is offered again to a storage that does not answer. */
const RETRY_STORAGE_MS = 1_000;

/** What is recorded of an attempt whose end the storage refuses. */
const UNSTORABLE: AttemptEnd = {
  status: "failure",
  failure: {
    reason: "error",
    code: "internal",
    message: "the result could not be stored; the server's log has the details",
  },
};

export interface AttemptsOptions {
  readonly storage: Storage;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  readonly log: Log;
  readonly now: () => number;
  /** Default: nothing is counted. */
  readonly metricsOf?: MetricsOf | undefined;
  /** A slot is free again. */
  onSlotFree(): void;
  /** A task of this endpoint is queued again, to be claimed at this time. */
  onQueued(endpoint: string, runAtMs: number): void;
}

interface Running {
  readonly task: Task;
  readonly leaseId: string;
  readonly execution: Execution;
}

export class Attempts {
  readonly runTimes = new RunTimes();
  readonly #options: AttemptsOptions;
  readonly #running = new Map<string, Running>();
  /** Ends that are being recorded. */
  readonly #recording = new Map<string, Promise<void>>();
  /** Aborted when no end is recorded any more. */
  readonly #givenUp = new AbortController();

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /** A task that runs here, as it was claimed. */
  get(taskId: string): Task | undefined {
    return this.#running.get(taskId)?.task;
  }

  /** True while an attempt runs here, and until its end is recorded. */
  knows(attempt: Attempt): boolean {
    return (
      this.#running.get(attempt.taskId)?.task.attempt === attempt.attempt ||
      this.#recording.has(keyOf(attempt))
    );
  }

  /** Runs a claimed task in a slot, and gives the slot back at its end. */
  start(claimed: ClaimedTask, endpoint: EndpointManifest, slot: Slot): void {
    const { task } = claimed;
    const { now } = this.#options;
    const attempt = attemptOf(claimed);
    const pace = new EventPace();
    const startedMs = performance.now();
    const execution = slot.execute(
      { arguments: claimed.arguments, taskId: task.taskId, attempt: task.attempt },
      {
        onEnd: (end) => {
          slot.release();
          this.#running.delete(task.taskId);
          const runMs = performance.now() - startedMs;
          this.runTimes.add(endpoint.name, runMs);
          this.#options.onSlotFree();
          if (end.kind === "failure") {
            this.#logFailure(attempt, end.failure);
          }
          if (end.kind === "lost") {
            this.#event(attempt, {
              kind: "log",
              level: "error",
              message: lostMessage(end.message),
            });
          }
          this.#record(attempt, this.#outcome(end, task, endpoint), runMs / 1_000);
        },
        onProgress: (fraction, message) => {
          if (pace.admitProgress(fraction, now())) {
            this.#event(attempt, { kind: "progress", fraction, message });
          }
        },
        onLog: (line) => {
          const { taskId, attempt: number } = attempt;
          logLine(this.#options.log, line, { endpoint: endpoint.name, taskId, attempt: number });
          if (pace.admitLog()) {
            this.#event(attempt, { kind: "log", ...line });
          }
        },
      },
    );
    this.#running.set(task.taskId, { task, leaseId: claimed.leaseId, execution });
    this.#options.changes.publish(task.taskId, task);
    const waitSeconds = ((task.startedAtMs ?? task.runAtMs) - task.runAtMs) / 1_000;
    this.#options.metricsOf?.(task.deploymentId)?.taskStarted(endpoint.name, waitSeconds);
  }

  /** Returns a claimed task to the queue without having run it. */
  giveBack(attempt: Attempt): void {
    this.#record(attempt, { status: "queued", failed: false });
  }

  /** Fails a claimed task without having run it. */
  refuse(claimed: ClaimedTask, failure: TaskFailure): void {
    const { taskId, endpoint } = claimed.task;
    this.#options.log.info({ taskId, endpoint }, `a task cannot run: ${failure.message}`);
    this.#record(attemptOf(claimed), { status: "failure", failure });
  }

  /** The leases under which attempts run here. */
  leaseIds(): string[] {
    return [...new Set([...this.#running.values()].map(({ leaseId }) => leaseId))];
  }

  /** Aborts a task that runs here; false when it does not. */
  abort(taskId: string): boolean {
    const running = this.#running.get(taskId);
    running?.execution.abort("cancelled");
    return running !== undefined;
  }

  /**
   * Resolves when the storage has every end that happened so far, or when it
   * did not take them in time: then these attempts run again.
   */
  async settled(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.#givenUp.abort(), withinMs);
    while (this.#recording.size > 0) {
      await Promise.all(this.#recording.values());
    }
    clearTimeout(timer);
  }

  /** Resolves when the storage has every end that happened so far, or they are given up. */
  async recorded(): Promise<void> {
    await Promise.all(this.#recording.values());
  }

  #outcome(end: ExecutionEnd, task: Task, endpoint: EndpointManifest): AttemptEnd {
    return outcomeOf(end, { task, endpoint, nowMs: this.#options.now(), random: Math.random() });
  }

  #logFailure({ taskId, attempt }: Attempt, failure: CallFailure): void {
    const { stack, message } = failure;
    this.#options.log.info(
      { taskId, attempt, err: { message, stack } },
      "a task's function failed",
    );
  }

  /** `runSeconds`: how long it ran; undefined for one that never did. */
  #record(attempt: Attempt, end: AttemptEnd, runSeconds?: number): void {
    const key = keyOf(attempt);
    const recording = this.#tryToRecord(attempt, end, runSeconds).finally(() =>
      this.#recording.delete(key),
    );
    this.#recording.set(key, recording);
  }

  /** Until it is recorded or no longer ours to record: the work is done and must not be lost. */
  async #tryToRecord(attempt: Attempt, end: AttemptEnd, runSeconds?: number): Promise<void> {
    const { storage, changes, recent, now, log } = this.#options;
    // The same each time: the storage knows a repetition by it.
    const nowMs = now();
    for (;;) {
      try {
        const [task] = await storage.endAttempts({ nowMs, ends: [{ attempt, end }] });
        if (task === undefined) {
          log.warn({ ...attempt }, "the end of an attempt was refused: its lease had been lost");
          // Whoever ended it instead may not have told those who wait here.
          changes.publish(attempt.taskId);
          return;
        }
        if (end.status === "success") {
          recent.add(task, end.result);
        }
        changes.publish(task.taskId, task);
        this.#count(task, end, runSeconds);
        if (task.status === "queued") {
          this.#options.onQueued(task.endpoint, task.runAtMs);
        }
        return;
      } catch (err) {
        log.error({ err, ...attempt }, "the end of an attempt could not be recorded");
        if (toProblem(err).reason !== "STORAGE_UNAVAILABLE") {
          if (end === UNSTORABLE) {
            return;
          }
          return this.#tryToRecord(attempt, UNSTORABLE, runSeconds);
        }
        const { signal } = this.#givenUp;
        try {
          await sleep(RETRY_STORAGE_MS, undefined, { signal });
        } catch {
          log.error({ ...attempt }, "the end of an attempt is lost: the node stops; it runs again");
          return;
        }
      }
    }
  }

  #count(task: Task, end: AttemptEnd, runSeconds: number | undefined): void {
    const outcome = countedAs(task, end);
    // What was claimed and given back without having begun did not happen.
    if (runSeconds !== undefined || outcome !== "returned") {
      const metrics = this.#options.metricsOf?.(task.deploymentId);
      metrics?.taskFinished(task.endpoint, outcome, runSeconds);
    }
  }

  #event(attempt: Attempt, body: TaskEventBody): void {
    const { storage, changes, now, log } = this.#options;
    storage
      .recordEvents({ events: [{ attempt, timeMs: now(), body }] })
      .then(() => changes.publish(attempt.taskId))
      .catch((err: unknown) => log.warn({ err, ...attempt }, "progress or log line was dropped"));
  }
}

export function attemptOf({ task, leaseId }: ClaimedTask): Attempt {
  const { deploymentId, taskId, attempt } = task;
  return { deploymentId, taskId, leaseId, attempt };
}

function countedAs({ status }: Task, end: AttemptEnd): TaskOutcome {
  if (status === "success" || status === "cancelled") {
    return status;
  }
  if (status !== "queued") {
    return "failure";
  }
  return end.status === "queued" && end.failed ? "retried" : "returned";
}

function lostMessage(reason: string): string {
  return `the worker ended while this ran: ${reason}`;
}

function keyOf({ taskId, attempt }: Attempt): string {
  return `${taskId}/${attempt}`;
}
