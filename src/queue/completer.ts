/**
 * The completer: brings the ends of attempts to the storage, with retries for as long as the storage
 * does not answer. The work is done and must not be lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Slots } from "../collections/slots.ts";
import { toProblem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { TaskOutcome } from "../metrics/metrics.ts";
import type { EndRecord, ExecutionEnd, FailureFacts } from "../pool/calls/execution.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { AttemptUse } from "../storage/hosting/usage.ts";
import type { LeasedTask } from "../storage/leases.ts";
import type { Attempt, AttemptEnd, ClaimedTask, NewEvent, Storage } from "../storage/storage.ts";
import { interrupted } from "../tasks/failure.ts";
import { retryAt } from "../tasks/retry.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";
import { loggedTrace } from "../tracing/context.ts";

/** Pause before the end of an attempt is offered again to a storage that does not answer. */
const COMPLETION_RETRY_PAUSE_MS = 1_000;

/** Recorded for an attempt whose end the storage rejects with an error. */
const UNSTORABLE: AttemptEnd = {
  status: "failure",
  failure: {
    reason: "error",
    code: "internal",
    message: "the result could not be stored; the server's log has the details",
  },
};

interface CompleterOptions {
  readonly storage: Pick<Storage, "endAttempts" | "recordEvents">;
  readonly log: Log;
  readonly now: () => number;
  /** The end is stored, and the task is as it left it. `ran` is undefined when it never ran. */
  onRecorded(task: Task, end: AttemptEnd, ran: RanAttempt | undefined): void;
  /** The end was refused, because somebody else has ended the attempt. */
  onStale(attempt: Attempt): void;
}

/** An end that is known only later. Rejects when `givenUp` aborts, and never otherwise. */
export type LaterEnd = (givenUp: AbortSignal) => Promise<AttemptEnd>;

/** An attempt that ran. */
export interface RanAttempt {
  /** As it was claimed. */
  readonly task: Task;
  readonly runSeconds: number;
  /** Takes what it reported and is not stored yet. Absent: it reported nothing. */
  readonly takeEvents: (() => Promise<readonly NewEvent[]>) | undefined;
  /** It was alone in its worker, as suspects are. */
  readonly alone: boolean;
  /** Undefined: its function has not begun. */
  readonly used: AttemptUse | undefined;
  /** Its seconds count for its key. */
  readonly isTimed: boolean;
}

export class Completer {
  readonly #options: CompleterOptions;
  /** The ends being recorded. */
  readonly #recording = new Slots<{
    readonly attempt: Attempt;
    readonly ended: Promise<EndRecord>;
  }>();
  /** Aborts when the node stops retrying. */
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

  /**
   * Records the end of an attempt in the background, and resolves with what became of it. `ran` is
   * undefined when it never ran.
   */
  record(attempt: Attempt, end: AttemptEnd | LaterEnd, ran?: RanAttempt): Promise<EndRecord> {
    const recorded =
      typeof end === "function"
        ? this.#recordLater(attempt, end, ran)
        : this.#tryToRecord(attempt, end, ran);
    const ended = recorded.then((record) => {
      this.#recording.take(slot);
      return record;
    });
    const slot = this.#recording.add({ attempt, ended });
    return ended;
  }

  /** Returns a claimed task to the queue without having run it. `unbegun`: nobody else has, either. */
  giveBack(attempt: Attempt, unbegun: Unbegun = {}): void {
    void this.record(attempt, { ...returned("it was returned before it began"), ...unbegun });
  }

  /** Fails a claimed task without having run it. */
  refuse(claimed: ClaimedTask, failure: TaskFailure, unbegun: Unbegun = {}): void {
    const { endpoint, taskId, attempt, trace } = claimed.task;
    const facts = { endpoint, taskId, attempt, ...loggedTrace(trace) };
    this.#options.log.info(facts, `a task cannot run: ${failure.message}`);
    void this.record(attemptOf(claimed), { status: "failure", failure, ...unbegun });
  }

  /**
   * Resolves when the storage has recorded every end, or when the time is over;
   * attempts without a recorded end then run again.
   */
  async settled(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.#givenUp.abort(), withinMs);
    while (this.#recording.size > 0) {
      await this.recorded();
    }
    clearTimeout(timer);
  }

  /**
   * Resolves when every end reported so far has been recorded or given up; with `leaseId`, every
   * one under that lease.
   */
  async recorded(leaseId?: string): Promise<void> {
    const asked = this.#recording
      .values()
      .filter(({ attempt }) => leaseId === undefined || attempt.leaseId === leaseId);
    await Promise.all(asked.map(({ ended }) => ended));
  }

  async #recordLater(attempt: Attempt, later: LaterEnd, ran?: RanAttempt): Promise<EndRecord> {
    let end: AttemptEnd;
    try {
      end = await later(this.#givenUp.signal);
    } catch {
      return this.#giveUp(attempt, ran);
    }
    return this.#tryToRecord(attempt, end, ran);
  }

  #giveUp(attempt: Attempt, ran: RanAttempt | undefined): EndRecord {
    const message = "the end of an attempt is lost: the node stops; it runs again";
    this.#options.log.error(logged(attempt, ran), message);
    return "given_up";
  }

  /** Retries until the end is recorded or the attempt has lost its lease. Never rejects. */
  async #tryToRecord(attempt: Attempt, end: AttemptEnd, ran?: RanAttempt): Promise<EndRecord> {
    const { storage, now, log, onRecorded, onStale } = this.#options;
    const task = ran?.task;
    let events = ran?.takeEvents && (await ran.takeEvents());
    // The same time in every try: the storage recognizes a repeated end by it.
    const nowMs = now();
    for (;;) {
      try {
        const ends = [{ attempt, end, events, task, used: ran?.used, isTimed: ran?.isTimed }];
        const [ended] = await storage.endAttempts({ nowMs, ends });
        if (ended === undefined) {
          log.warn(
            logged(attempt, ran),
            "the end of an attempt was refused: its lease had been lost",
          );
          onStale(attempt);
          return "stale";
        }
        onRecorded(ended, end, ran);
        return "recorded";
      } catch (err) {
        log.error({ err, ...logged(attempt, ran) }, "the end of an attempt could not be recorded");
        if (toProblem(err).reason !== "STORAGE_UNAVAILABLE") {
          if (events && events.length > 0) {
            await this.#recordEvents(attempt, events);
            events = undefined;
            continue;
          }
          if (end === UNSTORABLE) {
            return "given_up";
          }
          return this.#tryToRecord(attempt, UNSTORABLE, ran);
        }
        const { signal } = this.#givenUp;
        try {
          await sleep(COMPLETION_RETRY_PAUSE_MS, undefined, { signal });
        } catch {
          return this.#giveUp(attempt, ran);
        }
      }
    }
  }

  /** Stores events without the end: either of them is what the storage rejects. */
  async #recordEvents(attempt: Attempt, events: readonly NewEvent[]): Promise<void> {
    const { storage, log } = this.#options;
    try {
      await storage.recordEvents({ events: events.map((event) => ({ attempt, ...event })) });
    } catch (err) {
      log.warn({ err, ...attempt }, "progress or log lines were dropped");
    }
  }
}

/** What says that an attempt has not begun. */
type Unbegun = { readonly unbegun?: true };

/** What says that an attempt at an endpoint has not begun, where its starts have a rate. */
export function unbegunAt(endpoint: EndpointManifest | undefined): Unbegun {
  return endpoint?.byKey?.rate ? { unbegun: true } : {};
}

/** Back to the queue: its worker was ended because of others. */
export function displacedEnd(
  { message, unbegun }: Extract<ExecutionEnd, { readonly kind: "displaced" }>,
  endpoint: EndpointManifest,
): AttemptEnd {
  const end = returned(`its worker was ended for another reason: ${message}`);
  return { ...end, ...(unbegun && unbegunAt(endpoint)) };
}

/** Back to the queue, at once unless it gets another time: the end was not the task's fault. */
export function returned(why: string): Extract<AttemptEnd, { readonly status: "queued" }> {
  return { status: "queued", failed: false, failure: interrupted(why) };
}

export function attemptOf({ task, leaseId }: LeasedTask): Attempt {
  const { deploymentId, taskId, attempt } = task;
  return { deploymentId, taskId, leaseId, attempt };
}

/** How an end is counted that left its task like this. */
export function countedAs({ status }: Task, end: AttemptEnd): TaskOutcome {
  if (status === "success" || status === "cancelled") {
    return status;
  }
  if (status !== "queued") {
    return "failure";
  }
  return end.status === "queued" && end.failed ? "retried" : "returned";
}

/** The log fields of an attempt that has ended. */
function logged(attempt: Attempt, ran: RanAttempt | undefined): object {
  return { ...attempt, ...loggedTrace(ran?.task.trace) };
}

/** Back to the queue after a backoff, or final when it was tried often enough. */
export function failedEnd(
  failure: TaskFailure,
  { task, endpoint }: { readonly task: Task; readonly endpoint: EndpointManifest },
  nowMs: number,
  facts: FailureFacts = {},
): FailedEnd {
  const runAtMs = retryAt({
    failures: task.failedAttempts + 1,
    code: failure.code,
    policy: endpoint.retries,
    nowMs,
    random: Math.random(),
  });
  return runAtMs === undefined || facts.isFinal
    ? { status: "failure", failure, ...(facts.answer && { result: facts.answer }) }
    : { status: "queued", runAtMs, failed: true, failure };
}

type FailedEnd = Extract<AttemptEnd, { readonly status: "queued" | "failure" }>;
