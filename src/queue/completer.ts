/** Brings the ends of attempts to the storage, however long that takes to answer. */
import { setTimeout as sleep } from "node:timers/promises";
import { Slots } from "../collections/slots.ts";
import { toProblem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { TaskOutcome } from "../metrics/deployment.ts";
import type { DeploymentMetricsOf } from "../metrics/metrics.ts";
import type { Attempt, AttemptEnd, Storage } from "../storage/storage.ts";
import type { Task } from "../tasks/task.ts";
import { loggedTrace } from "../tracing/context.ts";
import type { Changes } from "./changes.ts";
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

export interface CompleterOptions {
  readonly storage: Pick<Storage, "endAttempts">;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  readonly log: Log;
  readonly now: () => number;
  /** Default: nothing is counted. */
  readonly metricsOf?: DeploymentMetricsOf | undefined;
  /** A task of this endpoint is queued again, to be claimed at this time. */
  onQueued(endpoint: string, runAtMs: number): void;
}

/** What is told of an attempt that ran. */
interface Ran {
  readonly runSeconds: number;
  readonly trace: string | undefined;
}

export class Completer {
  readonly #options: CompleterOptions;
  /** Those that are being recorded. */
  readonly #recording = new Slots<{ readonly attempt: Attempt; readonly ended: Promise<void> }>();
  /** Aborted when no end is recorded any more. */
  readonly #givenUp = new AbortController();

  constructor(options: CompleterOptions) {
    this.#options = options;
  }

  isUnderWay(attempt: Attempt): boolean {
    const { taskId, attempt: number } = attempt;
    return this.#recording.some(
      ({ attempt: one }) => one.taskId === taskId && one.attempt === number,
    );
  }

  /** `ran`: undefined for one that never did. */
  record(attempt: Attempt, end: AttemptEnd, ran?: Ran): void {
    const ended = this.#tryToRecord(attempt, end, ran).then(() => {
      this.#recording.take(slot);
    });
    const slot = this.#recording.add({ attempt, ended });
  }

  /**
   * Resolves when the storage has every end that happened so far, or when it
   * did not take them in time: then these attempts run again.
   */
  async settled(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.#givenUp.abort(), withinMs);
    while (this.#recording.size > 0) {
      await this.recorded();
    }
    clearTimeout(timer);
  }

  /** Resolves when the storage has every end that happened so far, or they are given up. */
  async recorded(): Promise<void> {
    await Promise.all(this.#recording.values().map(({ ended }) => ended));
  }

  /** Until it is recorded or no longer ours to record: the work is done and must not be lost. Never rejects. */
  async #tryToRecord(attempt: Attempt, end: AttemptEnd, ran?: Ran): Promise<void> {
    const { storage, changes, recent, now, log } = this.#options;
    // The same each time: the storage knows a repetition by it.
    const nowMs = now();
    for (;;) {
      try {
        const [task] = await storage.endAttempts({ nowMs, ends: [{ attempt, end }] });
        if (task === undefined) {
          log.warn(
            logged(attempt, ran),
            "the end of an attempt was refused: its lease had been lost",
          );
          // Whoever ended it instead may not have told those who wait here.
          changes.publish(attempt.taskId);
          return;
        }
        if (end.status === "success") {
          recent.add(task, end.result);
        }
        changes.publish(task.taskId, task);
        this.#count(task, end, ran?.runSeconds);
        if (task.status === "queued") {
          this.#options.onQueued(task.endpoint, task.runAtMs);
        }
        return;
      } catch (err) {
        log.error({ err, ...logged(attempt, ran) }, "the end of an attempt could not be recorded");
        if (toProblem(err).reason !== "STORAGE_UNAVAILABLE") {
          if (end === UNSTORABLE) {
            return;
          }
          return this.#tryToRecord(attempt, UNSTORABLE, ran);
        }
        const { signal } = this.#givenUp;
        try {
          await sleep(RETRY_STORAGE_MS, undefined, { signal });
        } catch {
          log.error(
            logged(attempt, ran),
            "the end of an attempt is lost: the node stops; it runs again",
          );
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

/** What lines in the log say of an attempt that has ended. */
function logged(attempt: Attempt, ran: Ran | undefined): object {
  return { ...attempt, ...loggedTrace(ran?.trace) };
}
