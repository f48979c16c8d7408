/**
 * The attempts that run on this node: each begins with a claimed task and a
 * slot, and ends with what the storage records of it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../errors.ts";
import type { EndpointManifest } from "../sdk/manifest.ts";
import type { CallFailure } from "../sdk/protocol.ts";
import type { Attempt, AttemptEnd, ClaimedTask, Storage } from "../storage/storage.ts";
import type { TaskEventBody } from "../tasks/event.ts";
import type { Task } from "../tasks/task.ts";
import type { Changes } from "./changes.ts";
import type { Log } from "./log.ts";
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
  readonly maxResultBytes: number;
  /** A slot is free again. */
  onSlotFree(endpoint: string): void;
}

export class Attempts {
  readonly #options: AttemptsOptions;
  readonly #running = new Map<string, { readonly task: Task; readonly execution: Execution }>();
  /** Ends that are being recorded. */
  readonly #recording = new Set<Promise<void>>();

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /** A task that runs here, as it was claimed. */
  get(taskId: string): Task | undefined {
    return this.#running.get(taskId)?.task;
  }

  /** Runs a claimed task in a slot, and gives the slot back at its end. */
  start(claimed: ClaimedTask, endpoint: EndpointManifest, slot: Slot): void {
    const { task } = claimed;
    const attempt = attemptOf(claimed);
    const execution = slot.execute(
      { arguments: claimed.arguments, taskId: task.taskId, attempt: task.attempt },
      {
        onEnd: (end) => {
          slot.release();
          this.#options.onSlotFree(endpoint.name);
          this.#running.delete(task.taskId);
          if (end.kind === "failure") {
            this.#logFailure(attempt, end.failure);
          }
          this.#record(attempt, this.#outcome(end, task, endpoint));
        },
        onProgress: (fraction, message) =>
          this.#event(attempt, { kind: "progress", fraction, message }),
        onLog: (line) => this.#event(attempt, { kind: "log", ...line }),
      },
    );
    this.#running.set(task.taskId, { task, execution });
    this.#options.changes.publish(task.taskId, task);
  }

  /** Returns a claimed task to the queue without having run it. */
  giveBack(claimed: ClaimedTask): void {
    this.#record(attemptOf(claimed), {
      status: "queued",
      runAtMs: this.#options.now(),
      failed: false,
    });
  }

  /** Aborts a task that runs here; false when it does not. */
  abort(taskId: string): boolean {
    const running = this.#running.get(taskId);
    running?.execution.abort("cancelled");
    return running !== undefined;
  }

  /** Resolves when the storage has every end that happened so far. */
  async settled(): Promise<void> {
    while (this.#recording.size > 0) {
      await Promise.all(this.#recording);
    }
  }

  #outcome(end: ExecutionEnd, task: Task, endpoint: EndpointManifest): AttemptEnd {
    const { now, maxResultBytes } = this.#options;
    return outcomeOf(end, { task, endpoint, nowMs: now(), maxResultBytes });
  }

  #logFailure({ taskId, attempt }: Attempt, failure: CallFailure): void {
    const { stack, message } = failure;
    this.#options.log.info(
      { taskId, attempt, err: { message, stack } },
      "a task's function failed",
    );
  }

  #record(attempt: Attempt, end: AttemptEnd): void {
    const recording = this.#tryToRecord(attempt, end).finally(() =>
      this.#recording.delete(recording),
    );
    this.#recording.add(recording);
  }

  /** Until it is recorded or no longer ours to record: the work is done and must not be lost. */
  async #tryToRecord(attempt: Attempt, end: AttemptEnd): Promise<void> {
    const { storage, changes, recent, now, log } = this.#options;
    for (;;) {
      try {
        const [task] = await storage.endAttempts({ nowMs: now(), ends: [{ attempt, end }] });
        if (task === undefined) {
          log.warn({ ...attempt }, "the end of an attempt was refused: its lease had been lost");
          return;
        }
        if (end.status === "success") {
          recent.add(task, end.result);
        }
        changes.publish(task.taskId, task);
        return;
      } catch (err) {
        log.error({ err, ...attempt }, "the end of an attempt could not be recorded");
        if (toProblem(err).reason !== "STORAGE_UNAVAILABLE") {
          if (end === UNSTORABLE) {
            return;
          }
          return this.#tryToRecord(attempt, UNSTORABLE);
        }
        await sleep(RETRY_STORAGE_MS);
      }
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

function attemptOf({ task, leaseId }: ClaimedTask): Attempt {
  const { deploymentId, taskId, attempt } = task;
  return { deploymentId, taskId, leaseId, attempt };
}
