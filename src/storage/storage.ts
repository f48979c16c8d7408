/**
 * The storage port: what the platform keeps, in the words of the domain.
 *
 * Promises that every adapter keeps, and that the contract suite checks:
 * - A promise resolves only when what it says is durable (as durable as the
 *   database is: an in-memory one promises nothing beyond the process).
 * - Each element of a list parameter is applied wholly or not at all, and
 *   lists answer in the order of their parameter.
 * - An attempt is fenced by its lease and its number: whoever no longer holds
 *   them changes nothing and is told so.
 * - A task in a final state never changes again, until it is pruned.
 *
 * Every method rejects with STORAGE_UNAVAILABLE when the database cannot be
 * asked. It is then unknown whether the change was made, and the methods that
 * submit, end, cancel and prolong are safe to repeat with the same parameters.
 * Any other error is a defect, which asking again would not mend. Times are
 * milliseconds since 1970.
 */

import type { Payload } from "../protocol/messages.ts";
import type { TaskEventBody, TaskHistory } from "../tasks/event.ts";
import type { Task, TaskFailure, TaskStatus } from "../tasks/task.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { HostingStorage } from "./hosting/hosting.ts";
import type { MetricsStorage } from "./metrics/metrics.ts";

/** A task to store. */
export interface NewTask {
  readonly deploymentId: string;
  /** Ids are in the order of `createdAtMs`: lists rely on it. */
  readonly taskId: string;
  readonly endpoint: string;
  readonly arguments: Payload;
  readonly createdAtMs: number;
  /** Not to be started before. */
  readonly runAtMs: number;
  /** Fails with `expired` when it has not been started by then; absent: waits for ever. */
  readonly startByMs?: number;
  readonly expiresAtMs: number;
  /** How long the result is kept after the end. */
  readonly retentionMs: number;
  /** Higher is claimed first. */
  readonly priority: number;
  readonly retryOf?: string;
  /** The trace that its attempts belong to, as text that the storage does not read. */
  readonly trace?: string;
  readonly idempotency?: {
    readonly key: string;
    /** Digest of the arguments and the schedule: tells a repetition from a collision. */
    readonly digest: string;
  };
  /** Refuse it when so many tasks of its endpoint are queued. */
  readonly queueLimit: number;
  /**
   * Store it as already claimed, attempt 1, under this lease: one write less
   * when a slot is free. It then does not count against `queueLimit`.
   */
  readonly leaseId?: string;
}

export type SubmitOutcome =
  | { readonly outcome: "stored"; readonly task: Task }
  /** The task that was stored under this idempotency key before. */
  | { readonly outcome: "replayed"; readonly task: Task }
  | { readonly outcome: "key_reused" }
  | { readonly outcome: "queue_full"; readonly queued: number }
  /** Files of its arguments were deleted before it came; see `registerBlobs`. */
  | { readonly outcome: "blobs_gone" };

/** One attempt of a task, as its holder names it. */
export interface Attempt {
  readonly deploymentId: string;
  readonly taskId: string;
  readonly leaseId: string;
  readonly attempt: number;
}

/** A claim that was made: the task, and what to run it with. */
export interface ClaimedTask {
  readonly task: Task;
  readonly leaseId: string;
  readonly arguments: Payload;
}

export type AttemptEnd =
  | { readonly status: "success"; readonly result: Payload }
  | { readonly status: "failure"; readonly failure: TaskFailure }
  | { readonly status: "cancelled" }
  /**
   * Back to the queue for another attempt: as a retry, when this one failed, or
   * not by its fault. It is not started before `runAtMs`; without that, it gets
   * the place back that it had.
   */
  | { readonly status: "queued"; readonly failed: boolean; readonly runAtMs?: number }
  /** The worker died: back to the place that it had, or failed when that happened too often. */
  | { readonly status: "worker_lost" };

export type CancelOutcome =
  | { readonly outcome: "cancelled"; readonly task: Task }
  /** It was not queued; nothing changed. */
  | { readonly outcome: "not_queued"; readonly task: Task };

/** Told of a question to the database: how long it took, and what it failed with, if it did. Does not throw. */
export type OperationObserver = (operation: string, tookMs: number, err?: unknown) => void;

export interface Storage extends AsyncDisposable {
  readonly capabilities: {
    /** Other nodes may use the same database: only expired leases are rescued at start. */
    readonly shared: boolean;
    /** What is stored outlives the process. */
    readonly durable: boolean;
  };

  /** People, organizations and tokens, in the same database. */
  readonly accounts: Accounts;

  /** What deployments run, in the same database. */
  readonly hosting: HostingStorage;

  /** What nodes have counted, for each other. */
  readonly metrics: MetricsStorage;

  /**
   * From now on, tells of each of its operations, whoever asks: those of
   * `accounts` and `hosting` with that before their names, and not of those of
   * `metrics`. One observer at a time. Absent where whoever wants to know has to look on from outside.
   */
  observe?(observer: OperationObserver): void;

  /** Opens the database and brings its schema up to date. Rejects with a message that says what to do. */
  start(): Promise<void>;

  /** Stores tasks. All of one call are one transaction. */
  submitTasks(parameters: { readonly tasks: readonly NewTask[] }): Promise<SubmitOutcome[]>;

  /** One task; undefined when it does not exist or was pruned. */
  getTask(parameters: TaskKey): Promise<Task | undefined>;

  /** What a task was submitted with; undefined when there is no such task. */
  getArguments(parameters: TaskKey): Promise<Payload | undefined>;

  /** What a task returned; undefined when there is none. */
  getResult(parameters: TaskKey): Promise<Payload | undefined>;

  /** A task with its stored events after `afterSequence`, at most `limit` of them. */
  getHistory(
    parameters: TaskKey & { readonly afterSequence: number; readonly limit: number },
  ): Promise<TaskHistory | undefined>;

  /**
   * Claims the queued tasks that are due, for each claim at most `limit` of
   * its endpoint: highest priority first, then longest due. A task is given
   * to one claimer only, and not after its `startByMs`. What was found due once
   * (by a claim for its endpoint, or because it was stored without a delay)
   * stays due when the clock goes back. One call finds at most 1,000 delayed
   * tasks of each endpoint due, those first whose time came first.
   */
  claimTasks(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
    readonly claims: readonly {
      readonly endpoint: string;
      readonly leaseId: string;
      readonly limit: number;
    }[];
  }): Promise<ClaimedTask[]>;

  /**
   * Records how attempts ended. Answers the task as it is now, or undefined
   * where the attempt was no longer the current one and nothing changed. The
   * same final end of the same attempt at the same `nowMs` once more is a
   * repetition, after an answer that got lost: it is answered with the task.
   */
  endAttempts(parameters: {
    readonly nowMs: number;
    readonly ends: readonly { readonly attempt: Attempt; readonly end: AttemptEnd }[];
  }): Promise<(Task | undefined)[]>;

  /**
   * Appends progress and log lines to the event logs of running attempts.
   * Answers the sequence number of each, or undefined where the attempt was
   * no longer the current one.
   */
  recordEvents(parameters: {
    readonly events: readonly {
      readonly attempt: Attempt;
      readonly timeMs: number;
      readonly body: TaskEventBody;
    }[];
  }): Promise<(number | undefined)[]>;

  /** Attempts that run under these leases, whoever knows of them: after an answer got lost. */
  listAttempts(parameters: { readonly leaseIds: readonly string[] }): Promise<Attempt[]>;

  /** Cancels a task that is queued; undefined when there is no such task. */
  cancelTask(parameters: TaskKey & { readonly nowMs: number }): Promise<CancelOutcome | undefined>;

  /**
   * Asks for the abort of a task that runs, on whichever node. Answers the
   * task; one that does not run is only answered. undefined for none.
   */
  requestAbort(parameters: TaskKey): Promise<Task | undefined>;

  /** The attempts under these leases whose abort was asked for. */
  listAborts(parameters: { readonly leaseIds: readonly string[] }): Promise<Attempt[]>;

  /**
   * Fails the queued tasks whose `startByMs` has passed, at most `limit`.
   * Answers them.
   */
  expireTasks(parameters: { readonly nowMs: number; readonly limit: number }): Promise<Task[]>;

  /** Opens a lease: the right of one worker to hold attempts, until it expires. */
  openLease(parameters: {
    readonly leaseId: string;
    /** Who holds it, for people who read the table. */
    readonly owner: string;
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<void>;

  /** Prolongs leases. Answers those that still existed, in the order in which they were given. */
  renewLeases(parameters: {
    readonly leaseIds: readonly string[];
    readonly nowMs: number;
    readonly ttlMs: number;
  }): Promise<string[]>;

  /**
   * Tells what there is to do, in one question that costs little, so that an
   * idle node need ask nothing else.
   */
  survey(parameters: {
    readonly nowMs: number;
    /** Whose queues are looked into. */
    readonly deploymentIds: readonly string[];
  }): Promise<Survey>;

  /** Ends a lease. Attempts still under it are treated as in `rescueExpired`. */
  closeLease(parameters: { readonly leaseId: string; readonly nowMs: number }): Promise<Task[]>;

  /**
   * Ends expired leases (or, with `all`, every lease) and returns their
   * attempts to the queue as those of lost workers. Answers the tasks that
   * changed.
   */
  rescueExpired(parameters: { readonly nowMs: number; readonly all?: boolean }): Promise<Task[]>;

  /** Deletes finished tasks that have expired, with all that belongs to them; at most `limit`. */
  pruneFinished(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;

  /**
   * Deletes tasks of deployments that were deleted, whatever their state, with
   * all that belongs to them; at most `limit` that live and as many that have
   * ended. An attempt that still runs is no longer the current one.
   */
  pruneDeleted(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;

  /**
   * Notes blobs before their bytes are written. From then on a blob is kept
   * while a stored task has it among its arguments or in its result, which
   * `submitTasks`, `endAttempts` and `pruneFinished` see to; one that no task
   * has is dead at `deleteAfterMs`, or when its last task is pruned. A task
   * whose blobs are being deleted is not stored (`blobs_gone`), and an attempt
   * that ends with such a result goes back to the queue instead.
   */
  registerBlobs(parameters: {
    readonly blobIds: readonly string[];
    readonly deleteAfterMs: number;
  }): Promise<void>;

  /** Makes blobs dead at once, as far as no task has them. */
  releaseBlobs(parameters: {
    readonly blobIds: readonly string[];
    readonly nowMs: number;
  }): Promise<void>;

  /**
   * Dead blobs, at most `limit`, whose bytes the caller then deletes. No task
   * can get them any more. Those that are not forgotten until `againMs` are
   * given to the next one who asks.
   */
  takeDeadBlobs(parameters: {
    readonly nowMs: number;
    readonly againMs: number;
    readonly limit: number;
  }): Promise<string[]>;

  /** The bytes of these dead blobs are gone. */
  forgetBlobs(parameters: { readonly blobIds: readonly string[] }): Promise<void>;

  /**
   * Tasks of a deployment, newest first. A page may have fewer than `limit`
   * tasks, even none, and still be followed by others: at most a bounded
   * number of rows is looked at. `nextBefore` is undefined after the last page.
   */
  listTasks(parameters: TaskListing): Promise<{
    readonly tasks: Task[];
    readonly nextBefore: string | undefined;
  }>;

  /**
   * How many tasks would be claimed before this one, counted up to `limit`;
   * undefined when it cannot be claimed now. Of delayed tasks that no claim has
   * found due yet, a bounded number is looked at, the longest due first.
   */
  queuePosition(
    parameters: TaskKey & { readonly nowMs: number; readonly limit: number },
  ): Promise<number | undefined>;

  /** How many tasks of each endpoint are queued and running, from maintained counters. */
  countTasks(parameters: { readonly deploymentId: string }): Promise<QueueCount[]>;

  /**
   * How many queued tasks of each endpoint could be claimed now, each counted
   * up to `limit`; endpoints without any are left out.
   */
  countDue(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<DueCount[]>;

  /** When the task of each endpoint that has been due longest became due; endpoints without any are left out. */
  oldestWaiting(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
  }): Promise<OldestWaiting[]>;

  /** When the earliest task that is queued but not yet due becomes due; undefined for none. */
  nextRunAt(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
  }): Promise<number | undefined>;
}

export interface Survey {
  /** There is something for `rescueExpired`, of whichever node. */
  readonly expiredLeases: boolean;
  /** There is something for `expireTasks`, of whichever deployment. */
  readonly overdueTasks: boolean;
  /** Where a task could be claimed now; each endpoint once, in any order. */
  readonly due: readonly { readonly deploymentId: string; readonly endpoint: string }[];
}

export interface TaskListing {
  readonly deploymentId: string;
  readonly endpoint?: string;
  readonly status?: TaskStatus;
  /** Created at this time or later. */
  readonly createdFromMs?: number;
  /** Created before this time. */
  readonly createdBeforeMs?: number;
  /** Only tasks with a smaller id: those after it in the list. */
  readonly before?: string;
  readonly limit: number;
}

export interface TaskKey {
  readonly deploymentId: string;
  readonly taskId: string;
}

export interface DueCount {
  readonly endpoint: string;
  readonly due: number;
}

export interface OldestWaiting {
  readonly endpoint: string;
  readonly dueAtMs: number;
}

export interface QueueCount {
  readonly endpoint: string;
  readonly queued: number;
  readonly running: number;
}
