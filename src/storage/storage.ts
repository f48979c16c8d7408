/**
 * The storage port: tasks, leases and blobs as domain operations.
 *
 * Every adapter keeps these promises, and the contract suite checks them:
 * - A call resolves only when its change is durable (as durable as the database
 *   is: an in-memory one promises nothing beyond the process).
 * - Each element of a list parameter is applied atomically, and results are in
 *   the order of the parameter.
 * - An attempt is fenced by its lease and its number. A stale holder changes
 *   nothing and learns so from the result.
 * - A task in a final state never changes again, until it is pruned.
 *
 * Every method rejects with STORAGE_UNAVAILABLE when the database cannot be
 * reached. It is then unknown whether the change was made; the methods that
 * submit, end, cancel and renew are safe to repeat with the same parameters.
 * Any other error is a defect, and repeating the call would not help. Times are
 * milliseconds since 1970.
 */

import type { Payload } from "../protocol/messages.ts";
import type { LineRange, TaskEventBody, TaskHistory } from "../tasks/event.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";
import type { Accounts } from "./accounts/accounts.ts";
import type { RestorableStorage } from "./backup.ts";
import type { ClaimByKey, LaterClaim } from "./claims-by-key.ts";
import type { DatabaseFacts } from "./database-facts.ts";
import type { HostingStorage } from "./hosting/hosting.ts";
import type { ScheduleRecord } from "./hosting/schedules.ts";
import type { AttemptUse } from "./hosting/usage.ts";
import type { LeasedTask, LeaseStorage } from "./leases.ts";
import type {
  StateCounts,
  TaskCountQuery,
  TaskListing,
  TaskSearchPage,
  TaskSearchQuery,
} from "./listing.ts";
import type { MetricsStorage } from "./metrics/metrics.ts";
import type { PieceStorage } from "./pieces.ts";
import type { DueCount, OldestWaiting, QueueCount, QueueState } from "./queues.ts";
import type { Attempt, TaskKey } from "./task-key.ts";

export type { Attempt, TaskKey } from "./task-key.ts";

/** A task to store. */
export interface NewTask {
  readonly deploymentId: string;
  /** Ids sort by `createdAtMs`; lists rely on it. */
  readonly taskId: string;
  readonly endpoint: string;
  readonly arguments: Payload;
  readonly createdAtMs: number;
  /** The task does not start earlier. */
  readonly runAtMs: number;
  /** The task fails with `expired` when it has not started by then. Absent: it waits for ever. */
  readonly startByMs?: number;
  readonly expiresAtMs: number;
  /** How long the result is kept after the task has ended. */
  readonly retentionMs: number;
  /** Higher is claimed first. */
  readonly priority: number;
  /** The task that it retries, whose `webhook` it has, too, while that is there. */
  readonly retryOf?: string;
  /** Whose it is among the callers that share its endpoint. */
  readonly key?: string | undefined;
  /** The trace that its attempts belong to, as opaque text. */
  readonly trace?: string;
  readonly idempotency?: {
    readonly key: string;
    /** Digest of the arguments and the schedule. It tells a repeated call from a reused key. */
    readonly digest: string;
    /** The earlier task is the answer even where it ended without success. */
    readonly replay?: "always" | undefined;
  };
  /** The task is refused when this many tasks of its endpoint are queued. */
  readonly queueLimit: number;
  /**
   * Stores the task as already claimed, attempt 1, under this lease. That saves
   * a write when a slot is free. The task then does not count against
   * `queueLimit`.
   */
  readonly leaseId?: string;
  /** The webhook of its deployment, by name, that hears of its end even if only of named ones. */
  readonly webhook?: string | undefined;
  /** The token that submits it, which its use is counted for. Absent: none does. */
  readonly tokenId?: string | undefined;
  /** At least one, without control characters. */
  readonly tags?: readonly string[] | undefined;
  /**
   * The same submit may have been carried out before, and its answer lost. Default: the id is new.
   * An id that was stored before and is not said to be may be stored anew after its task has ended.
   */
  readonly repeated?: boolean;
}

export type SubmitOutcome =
  | { readonly outcome: "stored"; readonly task: Task }
  /** The task that was stored earlier under this idempotency key. */
  | { readonly outcome: "replayed"; readonly task: Task }
  | { readonly outcome: "key_reused" }
  | { readonly outcome: "queue_full"; readonly queued: number }
  /** Files of its arguments were deleted before the submit; see `registerBlobs`. */
  | { readonly outcome: "blobs_gone" }
  /** Its deployment has no webhook of that name. */
  | { readonly outcome: "webhook_unknown" };

/** A claimed task with its arguments. */
export interface ClaimedTask extends LeasedTask {
  readonly arguments: Payload;
}

/** What a claim found. */
export interface Claimed {
  readonly tasks: ClaimedTask[];
  /** Endpoints that go by keys and gave less than was asked for while tasks of them may be waiting. */
  readonly later: readonly LaterClaim[];
  /** Keys whose delayed tasks the claim has found due, of endpoints that go by keys. Absent: none. */
  readonly due?: readonly { readonly endpoint: string; readonly keys: readonly string[] }[];
  /** Leases under which a cell may have claimed others that did not answer. Absent: none. */
  readonly doubtful?: readonly string[];
}

export type AttemptEnd =
  | { readonly status: "success"; readonly result: Payload }
  /** `result` is what is to be read all the same, without blobs: the answer of a mounted server. */
  | {
      readonly status: "failure";
      readonly failure: TaskFailure;
      readonly result?: Payload;
      /** As of a return to the queue. */
      readonly unbegun?: true;
    }
  | { readonly status: "cancelled" }
  /**
   * Back to the queue for another attempt: a retry when this one `failed`,
   * otherwise a requeue that was not its fault. It does not start before
   * `runAtMs`; without that, it returns to its old place in the queue. The
   * task records the attempt with its `failure`. With `suspect` it may have ended
   * its worker, and is claimed as a suspect from then on. Without, one that failed
   * is a suspect no longer, and any other stays what it was. With `unbegun` its function has not begun,
   * and will not under this attempt: that it was claimed counts for no rate from the next claim on.
   */
  | {
      readonly status: "queued";
      readonly failed: boolean;
      readonly runAtMs?: number;
      readonly failure: TaskFailure;
      readonly suspect?: true;
      readonly unbegun?: true;
    }
  /**
   * The worker died with this attempt alone in it, for the reason in `failure`. The
   * task returns to its old place in the queue as a suspect, or fails when that
   * happened too often (`countedDeaths`).
   */
  | { readonly status: "worker_lost"; readonly failure: TaskFailure }
  /** The worker was cut off, for the reason in `failure`: ends as if its lease had ended. */
  | { readonly status: "node_lost"; readonly failure: TaskFailure };

/** Progress or a log line of a running attempt, for its event log. */
export interface NewEvent {
  readonly timeMs: number;
  readonly body: TaskEventBody;
  /** The lines of its attempt that it removes. */
  readonly displaces?: LineRange;
}

export type CancelOutcome =
  | { readonly outcome: "cancelled"; readonly task: Task }
  /** The task was not queued; nothing changed. */
  | { readonly outcome: "not_queued"; readonly task: Task };

/** What of a task that waits is changed; what is undefined stays. */
export interface TaskChange {
  readonly priority?: number | undefined;
  /** A time that has passed is now. */
  readonly runAtMs?: number | undefined;
  /** Null: none. */
  readonly startByMs?: number | null | undefined;
  readonly retentionMs?: number | undefined;
  /** In place of those that it has. Empty: none. */
  readonly tags?: readonly string[] | undefined;
}

/** A page of the keys of tasks, newest first. */
export interface TaskKeyPage {
  readonly keys: readonly TaskKey[];
  /** Undefined on the last page. */
  readonly nextBefore: string | undefined;
}

/** What became of a task that was to be deleted: nothing where it runs, or is not there. */
export type DeleteOutcome = "deleted" | "running" | "not_found";

/**
 * Called after each database operation with its duration and, if it failed, its
 * error. Must not throw.
 */
export type OperationObserver = (operation: string, tookMs: number, err?: unknown) => void;

export interface Storage extends RestorableStorage, PieceStorage, LeaseStorage, AsyncDisposable {
  readonly capabilities: {
    /** Other nodes may use the same database, so only expired leases are rescued at start. */
    readonly shared: boolean;
    /** Stored data outlives the process. */
    readonly durable: boolean;
  };

  /** What the operator has to know about the data that was opened; known after `start`. */
  readonly warnings?: readonly string[];

  /** The numbers of the cells that keep tasks, home among them. Absent: home alone does. */
  readonly cells?: ReadonlySet<number>;

  /** Says in which cell a new task is to be stored, by which its id is made. Absent: at home. */
  placeTask?(parameters: Placing): Promise<number>;

  /** People, organizations and tokens, in the same database. */
  readonly accounts: Accounts;

  /** Revisions, secrets, logs and nodes, in the same database. */
  readonly hosting: HostingStorage;

  /** Metric samples that nodes share with each other. */
  readonly metrics: MetricsStorage;

  /**
   * Reports every operation to `observer` from now on. Operations of `accounts`
   * and `hosting` carry that prefix in their names; those of `metrics` are not
   * reported. One observer at a time. An adapter without this method has to be
   * measured from outside.
   */
  observe?(observer: OperationObserver): void;

  /** Opens the database and migrates its schema. Rejects with a message that says what to do. */
  start(): Promise<void>;

  /**
   * Stores tasks, all of one call in one transaction. An idempotency key stands for the task that
   * was stored with it, until that expires or ends without success; then it goes to the next one.
   */
  submitTasks(parameters: { readonly tasks: readonly NewTask[] }): Promise<SubmitOutcome[]>;

  /**
   * Fires a schedule: takes its time and stores its task in one transaction, so that each time is
   * fired once. Returns what became of the submit; undefined where the time is not taken, because
   * another has taken it or the schedule has changed. A task that finds no room leaves the time to
   * be fired again, and what it was refused for in the schedule.
   */
  fireSchedule(parameters: Firing): Promise<Fired | undefined>;

  /** Returns one task; undefined when it does not exist or was pruned. */
  getTask(parameters: TaskKey): Promise<Task | undefined>;

  /** Returns a task's arguments; undefined when the task does not exist. */
  getArguments(parameters: TaskKey): Promise<Payload | undefined>;

  /** Returns a task's result, also one of a failure; undefined when it has none. */
  getResult(parameters: TaskKey): Promise<Payload | undefined>;

  /** Returns a task with at most `limit` of its stored events after `afterSequence`. */
  getHistory(
    parameters: TaskKey & { readonly afterSequence: number; readonly limit: number },
  ): Promise<TaskHistory | undefined>;

  /**
   * Claims queued tasks that are due. Each claim takes at most `limit` tasks of
   * its endpoint, highest priority first, then longest due. A task goes to one
   * claimer only, and not after its `startByMs`. A task that was once found due
   * (by a claim for its endpoint, or because it was stored without a delay)
   * stays due when the clock goes back. One call finds at most 1,000 delayed
   * tasks of each endpoint due, earliest first. Suspects are claimed apart: only
   * with `suspects`, and nothing else then.
   *
   * With `byKey` the tasks of an endpoint are claimed by their keys in turn, from the one after that
   * which was claimed last; of each key the highest priority first, then the longest due. Tasks
   * without a key are those of one key. Across all nodes, never more of one key run than `concurrency`,
   * and no window of the period of `rate` has more starts than its count, but for those of tasks that
   * are known not to have begun. One claim passes 1,000 keys
   * at most that have none to start.
   *
   * With `fair: "seconds"` the next task is of the key that has had the least: the time that its tasks
   * have run, those that run so far, and for each that has just started what its last ones took on
   * average, or, of a key that is new, those of the endpoint. A key has had at least what the least
   * served had of those that could start when the endpoint was claimed last. Of equals the one with
   * fewer in this claim is next, and then the one whose turn it is. A claim compares 200 keys at most.
   */
  claimTasks(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
    readonly suspects?: boolean;
    readonly claims: readonly {
      readonly endpoint: string;
      readonly leaseId: string;
      readonly limit: number;
      /** The same for all claims of an endpoint. */
      readonly byKey?: ClaimByKey | undefined;
    }[];
  }): Promise<Claimed>;

  /**
   * Returns in how many milliseconds the limits of its key let the first suspect of an endpoint start:
   * 0 for one that may start now, and infinity where each waits for another task of its key to end.
   * Undefined: no suspect waits. A claim looks at as many, the first 100.
   */
  nextSuspect(parameters: {
    readonly deploymentId: string;
    readonly endpoint: string;
    readonly nowMs: number;
    readonly byKey: ClaimByKey;
  }): Promise<number | undefined>;

  /**
   * Records how attempts ended, with the `events` that they reported last. Returns
   * each task as it is now, or undefined where the attempt was stale and nothing
   * changed. What an attempt used that ran is counted with its end: the time since it was claimed,
   * the bytes of its result, and what `used` says. The same final end of the same attempt at the same `nowMs` is a
   * repeated call whose first answer was lost: it returns the task, and appends
   * nothing.
   */
  endAttempts(parameters: {
    readonly nowMs: number;
    readonly ends: readonly {
      readonly attempt: Attempt;
      readonly end: AttemptEnd;
      readonly events?: readonly NewEvent[] | undefined;
      /** The task as it was claimed for this attempt, so that it need not be read again. */
      readonly task?: Task | undefined;
      /** What it used, besides what the storage knows itself. Absent: it did not run. */
      readonly used?: AttemptUse | undefined;
      /**
       * Its endpoint goes by seconds, so that they are counted for its key; false: it does not. Without
       * `task` they are counted where the key is known to go by them.
       */
      readonly isTimed?: boolean | undefined;
    }[];
  }): Promise<(Task | undefined)[]>;

  /**
   * Appends events to the logs of running attempts. Returns the sequence number of each, or
   * undefined where the attempt was stale. A call that is repeated because its answer was lost may
   * append its events twice.
   */
  recordEvents(parameters: {
    readonly events: readonly (NewEvent & { readonly attempt: Attempt })[];
  }): Promise<(number | undefined)[]>;

  /**
   * Lists the attempts that run under these leases; with `cell`, those of that cell alone. Finds claims
   * whose answer was lost.
   */
  listAttempts(parameters: {
    readonly leaseIds: readonly string[];
    readonly cell?: number;
  }): Promise<Attempt[]>;

  /** Cancels a queued task; undefined when the task does not exist. */
  cancelTask(parameters: TaskKey & { readonly nowMs: number }): Promise<CancelOutcome | undefined>;

  /**
   * Deletes tasks of a deployment that do not run, with all that is known of them: arguments, results,
   * failures, events, pieces, log lines, messages to webhooks and idempotency keys; their blobs are
   * dead where no other task refers to them. What is left is the id and the time, until the task would
   * have expired. Answers in the order of `taskIds`, none of which occurs twice.
   */
  deleteTasks(parameters: {
    readonly deploymentId: string;
    readonly taskIds: readonly string[];
    readonly nowMs: number;
  }): Promise<DeleteOutcome[]>;

  /** Changes a queued task; undefined when the task does not exist. */
  updateTask(
    parameters: TaskKey & { readonly change: TaskChange; readonly nowMs: number },
  ): Promise<
    | {
        readonly outcome: "updated" | "not_queued";
        /** As it is now; unchanged where it was not queued. */
        readonly task: Task;
      }
    | undefined
  >;

  /** When a task was deleted that would not have expired yet; undefined for any other. */
  findDeleted(parameters: TaskKey): Promise<number | undefined>;

  /**
   * Requests the abort of a running task, on any node. Returns the task,
   * unchanged when it is not running; undefined when it does not exist.
   */
  requestAbort(parameters: TaskKey): Promise<Task | undefined>;

  /** Lists the attempts under these leases whose abort was requested. */
  listAborts(parameters: { readonly leaseIds: readonly string[] }): Promise<Attempt[]>;

  /** Fails at most `limit` queued tasks whose `startByMs` has passed, and returns them. */
  expireTasks(parameters: { readonly nowMs: number; readonly limit: number }): Promise<Task[]>;

  /** Returns what maintenance is due, in one cheap query: an idle node needs no other. */
  survey(parameters: {
    readonly nowMs: number;
    /** Deployments whose queues are checked. */
    readonly deploymentIds: readonly string[];
    /** Until when their schedules are told. Default: now. */
    readonly untilMs?: number;
  }): Promise<Survey>;

  /**
   * Deletes at most `limit` expired finished tasks with all their data, but none whose end a webhook
   * waits for and whose message was not made yet, and forgets as many that were deleted before, and
   * as many starts, also unbegun ones, that no window of a rate can hold. Returns how many there were of
   * what was most.
   */
  pruneFinished(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;

  /**
   * Deletes tasks of deleted deployments in any state, with all their data: at
   * most `limit` live ones and as many finished ones. A running attempt becomes
   * stale. Returns how many.
   */
  pruneDeleted(parameters: { readonly nowMs: number; readonly limit: number }): Promise<number>;

  /**
   * Registers blobs before their bytes are written. A registered blob is kept
   * while a stored task refers to it from its arguments or its result;
   * `submitTasks`, `endAttempts` and `pruneFinished` maintain those references.
   * A blob without references is dead at `deleteAfterMs`, or when its last task
   * is pruned. A task whose blobs are being deleted is not stored
   * (`blobs_gone`), and an attempt that ends with such a result is requeued
   * instead.
   */
  registerBlobs(parameters: {
    readonly blobIds: readonly string[];
    readonly deleteAfterMs: number;
  }): Promise<void>;

  /** Marks these blobs as dead at once, except those that a task refers to. */
  releaseBlobs(parameters: {
    readonly blobIds: readonly string[];
    readonly nowMs: number;
  }): Promise<void>;

  /**
   * Returns at most `limit` dead blobs, whose bytes the caller then deletes. No
   * task can refer to them any more. Blobs that are not forgotten by `againMs`
   * are returned again.
   */
  takeDeadBlobs(parameters: {
    readonly nowMs: number;
    readonly againMs: number;
    readonly limit: number;
  }): Promise<string[]>;

  /** Removes dead blobs from the registry after their bytes were deleted. */
  forgetBlobs(parameters: { readonly blobIds: readonly string[] }): Promise<void>;

  /**
   * Lists tasks of a deployment, newest first. Each call scans a bounded number
   * of rows, so a page may have fewer than `limit` tasks, or no task at all,
   * and still be followed by others. `nextBefore` is undefined on the last
   * page.
   */
  listTasks(parameters: TaskListing): Promise<{
    readonly tasks: Task[];
    readonly nextBefore: string | undefined;
  }>;

  /**
   * Lists tasks of several deployments, newest first, as `listTasks` does: each
   * call scans a bounded number of rows of all of them together.
   */
  searchTasks(parameters: TaskSearchQuery): Promise<TaskSearchPage>;

  /**
   * Finds what `searchTasks` does, and answers the keys alone: for changes of many tasks, which need
   * nothing else of each.
   */
  searchKeys(parameters: TaskSearchQuery): Promise<TaskKeyPage>;

  /**
   * Counts the tasks of several deployments by state. It looks at a bounded number of the newest
   * rows of those that live, that failed or were cancelled, and that finished; where there are
   * more, the count is what was found.
   */
  countStates(parameters: TaskCountQuery): Promise<StateCounts>;

  /**
   * Counts the tasks that would be claimed before this one, up to `limit`;
   * undefined when the task cannot be claimed now. Of delayed tasks that no
   * claim has found due yet, a bounded number is considered, longest due first.
   */
  queuePosition(
    parameters: TaskKey & { readonly nowMs: number; readonly limit: number },
  ): Promise<number | undefined>;

  /** Returns the number of queued and running tasks per endpoint, from maintained counters. */
  countTasks(parameters: { readonly deploymentId: string }): Promise<QueueCount[]>;

  /**
   * Counts the queued tasks per endpoint that could be claimed now, up to
   * `limit` each; endpoints without such tasks are left out.
   */
  countDue(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
    readonly limit: number;
  }): Promise<DueCount[]>;

  /**
   * Returns when the longest-due task of each endpoint became due; endpoints
   * without due tasks are left out.
   */
  oldestWaiting(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
  }): Promise<OldestWaiting[]>;

  /**
   * Returns the counts of `countTasks` with what `oldestWaiting` tells, of several deployments
   * in one query. Endpoints without queued or running tasks are left out.
   */
  queueStates(parameters: {
    readonly deploymentIds: readonly string[];
    readonly nowMs: number;
  }): Promise<QueueState[]>;

  /** Tells what the database is, for the operator. */
  describeDatabase(): Promise<DatabaseFacts>;

  /** Returns when the next delayed task becomes due; undefined when no task is delayed. */
  nextRunAt(parameters: {
    readonly deploymentId: string;
    readonly nowMs: number;
  }): Promise<number | undefined>;
}

/** What decides where a new task is stored. */
export interface Placing
  extends Pick<NewTask, "deploymentId" | "endpoint">,
    Partial<Pick<NewTask, "key" | "retryOf">> {
  readonly idempotencyKey?: string | undefined;
}

/** A time of a schedule that is fired, or passed over. */
export interface Firing {
  /** As it was read. */
  readonly schedule: ScheduleRecord;
  /** Its time. */
  readonly atMs: number;
  /** The time after it. */
  readonly nextAtMs: number;
  readonly end:
    | { readonly outcome: "task"; readonly task: NewTask }
    | { readonly outcome: "skipped" | "missed" | "refused"; readonly message: string };
}

/** What became of a time that was taken: of its task, or `none` where it has none. */
export type Fired = SubmitOutcome | { readonly outcome: "none" };

export interface Survey {
  /** The next time of each of the deployments that has a schedule until then. */
  readonly schedules: readonly { readonly deploymentId: string; readonly nextAtMs: number }[];
  /** `rescueExpired` has work, of any node. */
  readonly expiredLeases: boolean;
  /** `expireTasks` has work, of any deployment. */
  readonly overdueTasks: boolean;
  /** Endpoints with a task that could be claimed now; each once, in any order. */
  readonly due: readonly { readonly deploymentId: string; readonly endpoint: string }[];
  /** Those of them with suspects that could be claimed now, and how many each has. */
  readonly suspects: readonly {
    readonly deploymentId: string;
    readonly endpoint: string;
    readonly count: number;
  }[];
}
