/**
 * The task queue of one deployment on this node: how a task is submitted, claimed, attempted and
 * ended. The class reads from top to bottom in that order.
 *
 *   submit ── no slot is free, or others wait ──> queued <────────────────┐
 *     │                                           │   │ claim             │ again
 *     └── due, a slot free, nothing waiting ──────│─> running ── end ─────┤
 *                                                 │                       └─> success, failure
 *                                                 └─────────────────────────> or cancelled: final
 *
 *   from     to         because                                             where
 *   -        queued     it was submitted, alone or with others              `#store`, `submitAll`
 *   -        running    it was submitted, due, and a slot was free          `#submit`, `#store`
 *   queued   running    it was claimed for a free slot                      `#claim`, `Suspects`
 *   running  failure    it was claimed, and this revision cannot run it     `#failIfRefused`
 *   running  queued     it was claimed, and its endpoint or slot is gone    `#start`
 *   running  success    its function returned                               `#outcome`
 *   running  queued     it failed or took too long, and is tried again      `failedEnd`
 *   running  failure    it failed or took too long for the last time        `failedEnd`
 *   running  queued     its worker died                                     `#outcome`
 *   running  queued     its node lost the storage or the worker: cut off    `#outcome`
 *   running  queued     its worker or the node was stopped: not its fault   `#outcome`
 *   running  queued     its files cannot be moved now: after 5 s            `#outcome`
 *   running  queued     its node is gone, so that its lease has ended       `onRescued`
 *   running  cancelled  a caller has aborted it                             `cancel`, `#outcome`
 *   queued   cancelled  a caller has cancelled it                           `cancel`
 *   queued   failure    it was not started by its deadline                  `onExpired`
 *   queued   failure    its endpoint is gone, so that nobody claims it      `failUnserved`
 *
 * A **slot** is room for one call in a worker. A **lease** is a worker's right to end its attempts, which
 * its node renews; its id is the worker's. A **suspect** may have ended its worker: it is claimed apart,
 * and runs alone (`claims/suspects.ts`). A task that lost too many workers or nodes fails where it would
 * go back: the storage counts (`tasks/lost.ts`). An endpoint with `batch` or `byKey` is only claimed.
 *
 * The storage has the truth: a submit is answered after its commit, and an end counts when it is stored.
 * The pool says how an execution ended (`ExecutionEnd`), `#outcome` what to store of it (`AttemptEnd`),
 * and the storage answers with what the task is now (`Task.status`). Everything else is a **hint** that
 * may get lost: `#changes` wakes callers that wait, `wake` claims. The node's maintenance finds what a
 * lost hint has left lying.
 */
import { Problem } from "../errors.ts";
import type { EndRecord, ExecutionEnd } from "../pool/calls/execution.ts";
import type { Slot } from "../pool/pool.ts";
import type { EndpointManifest, ServiceManifest } from "../protocol/manifest.ts";
import type { Payload } from "../protocol/messages.ts";
import { calledEndpoints } from "../service/mounts.ts";
import type { LeasedTask } from "../storage/leases.ts";
import type { AttemptEnd, ClaimedTask, NewTask } from "../storage/storage.ts";
import * as failures from "../tasks/failure.ts";
import { isFinal, type Task } from "../tasks/task.ts";
import { SingleFlight } from "../time/single-flight.ts";
import type { OpenSpan } from "../tracing/tracing.ts";
import { Amending } from "./amending.ts";
import { type Adopt, Attempts, type BegunAttempt, type RunningAttempt } from "./attempts.ts";
import { Backlog } from "./claims/backlog.ts";
import { ClaimRecovery } from "./claims/recovery.ts";
import { isSuspect, Suspects } from "./claims/suspects.ts";
import {
  attemptOf,
  Completer,
  countedAs,
  displacedEnd,
  failedEnd,
  type RanAttempt,
  returned,
  unbegunAt,
} from "./completer.ts";
import { RunTimes, retryAfter } from "./estimate.ts";
import type { MaintainedQueue } from "./maintenance/maintenance.ts";
import { UnservedTasks } from "./maintenance/unserved-tasks.ts";
import type { QueueOptions } from "./options.ts";
import { Peers } from "./peers.ts";
import {
  NewIds,
  type StoreOutcome,
  type Submission,
  type SubmissionOptions,
  type Submitted,
  storeTask,
  toNewTask,
  toSubmitted,
} from "./submission.ts";
import { notFound, type TaskQuestion, Tasks, tooLate } from "./tasks.ts";
import { attemptBegan, attemptEnd, tracedSubmit, tracedSubmits } from "./traced.ts";
import { Changes } from "./waits/changes.ts";

/** Pause before a task runs again whose files could not be moved: the blob store is away or full. */
const BLOB_STORE_RETRY_PAUSE_MS = 5_000;
/** How long a cancel waits beyond the grace of an abort, which has killed what did not listen. */
const ABORT_MARGIN_MS = 5_000;

export class Queue implements Disposable {
  /** What callers ask of a task that exists. */
  readonly tasks: Tasks;
  readonly amending: Amending;
  readonly runTimes = new RunTimes();
  readonly #options: QueueOptions;
  readonly #newIds: NewIds;
  readonly #changes: Changes;
  readonly #backlog: Backlog;
  readonly #claims = new SingleFlight(() => this.#claim());
  readonly #recovery: ClaimRecovery;
  readonly #suspects: Suspects;
  readonly #unserved: UnservedTasks | undefined;
  readonly #attempts: Attempts;
  readonly #completer: Completer;
  readonly #peers: Peers;
  readonly #unregister: () => void;
  #stopped = false;

  constructor(options: QueueOptions) {
    const { deploymentId, notifier, maintenance, revisions } = options;
    const changes = new Changes(
      options.maxWaiting,
      notifier && ((changed) => notifier.publish({ kind: "changed", ...changed })),
    );
    const completer = new Completer({
      ...options,
      onRecorded: (task, end, ran) => this.#recorded(task, end, ran),
      // The node that ended it may not have notified the callers that wait here.
      onStale: (attempt) => {
        this.#attempts.forget(attempt);
        changes.publish(attempt.taskId);
      },
    });
    const attempts = new Attempts({
      ...options,
      changes,
      onEnd: (it, end) => this.#ended(it, end),
    });
    const backlog = new Backlog(options, () => this.wake());
    const recovery = new ClaimRecovery({ ...options, attempts, completer });
    this.#options = options;
    this.#newIds = new NewIds(options);
    this.#changes = changes;
    this.#completer = completer;
    this.#attempts = attempts;
    this.#backlog = backlog;
    this.#recovery = recovery;
    this.tasks = new Tasks({ ...options, changes, runTimes: this.runTimes, attempts, backlog });
    this.amending = new Amending({ ...options, changes, tasks: this.tasks, queue: this });
    const start = (claimed: ClaimedTask, slot: Slot): void =>
      this.#failIfRefused(claimed) ? slot.release() : this.#start(claimed, slot);
    this.#suspects = new Suspects({ ...options, backlog, recovery, start });
    this.#unserved = revisions && new UnservedTasks({ ...options, revisions, completer });
    this.#peers = new Peers({
      ...options,
      tasks: this.tasks,
      onQueued: (endpoint, keys) => this.#came(endpoint, keys),
      onLost: () => backlog.lost(),
      onChanged: (changed) => changes.hear(changed),
      onAbort: (taskId) => attempts.abort(taskId),
    });
    this.#unregister = maintenance.register(deploymentId, this.#maintained);
  }

  // Submit: a task is stored, as claimed for a slot that is free, or as queued.

  /**
   * Submits a call; resolves when its task is stored. Rejects with QUEUE_FULL,
   * IDEMPOTENCY_KEY_REUSED or STORAGE_UNAVAILABLE.
   */
  submit(
    endpoint: EndpointManifest,
    payload: Payload,
    options: SubmissionOptions = {},
  ): Promise<Submitted> {
    const submission = { endpoint, payload, options };
    const { tracing } = this.#options;
    return this.#newIds.one(submission, (taskId) =>
      tracing === undefined
        ? this.#submit(submission, taskId)
        : tracedSubmit(tracing, { submission, taskId }, (span) =>
            this.#submit(submission, taskId, span),
          ),
    );
  }

  async #submit(submission: Submission, taskId: string, span?: OpenSpan): Promise<Submitted> {
    const { endpoint } = submission;
    const task = this.#newTask(submission, taskId, span);
    const startsNow =
      !this.#stopped &&
      submission.options?.refusal === undefined &&
      task.runAtMs <= task.createdAtMs &&
      endpoint.batch === undefined &&
      endpoint.byKey === undefined &&
      !this.#backlog.has(endpoint.name);
    const slot = startsNow ? this.#options.pool.reserve(endpoint) : undefined;
    const submitted = this.#answer(await this.#store(task, submission, slot), submission);
    if (submitted instanceof Problem) {
      throw submitted;
    }
    return submitted;
  }

  /** Stores a task: as claimed if there is a slot, in which it starts when that is committed. */
  async #store(task: NewTask, submission: Submission, slot?: Slot): Promise<StoreOutcome> {
    const { endpoint } = submission;
    // A call that fails may have been carried out: then nobody runs the task, until recovery finds it.
    const claiming = slot && this.#recovery.callBegins();
    try {
      const wanted = slot ? { ...task, leaseId: slot.workerId } : task;
      const outcome = await storeTask(wanted, submission, this.#options.storage);
      if (outcome.outcome === "stored" && outcome.task.status === "running" && slot) {
        const { workerId: leaseId } = slot;
        this.begin({ task: outcome.task, leaseId, arguments: task.arguments }, endpoint, slot);
        return outcome;
      }
      slot?.release();
      if (outcome.outcome === "stored") {
        this.#announce([task]);
      }
      return outcome;
    } catch (err) {
      if (slot) {
        slot.release();
        this.#recovery.doubt([slot.workerId]);
      }
      throw err;
    } finally {
      claiming?.end();
    }
  }

  /**
   * Submits calls in one transaction; resolves with the task of each, or with
   * the problem for which it was refused. All of them wait for a claim, even
   * when slots are free, so that the one of the highest priority starts first.
   */
  async submitAll(submissions: readonly Submission[]): Promise<(Submitted | Problem)[]> {
    const { tracing } = this.#options;
    const ids = await this.#newIds.all(submissions);
    return tracing === undefined
      ? this.#submitAll(submissions, ids)
      : tracedSubmits(tracing, { submissions, ids }, (spans) =>
          this.#submitAll(submissions, ids, spans),
        );
  }

  async #submitAll(
    submissions: readonly Submission[],
    ids: readonly string[],
    spans: readonly OpenSpan[] = [],
  ): Promise<(Submitted | Problem)[]> {
    const tasks = submissions.map((each, at) => this.#newTask(each, ids[at] ?? "", spans[at]));
    const outcomes = tasks.length === 0 ? [] : await this.#options.storage.submitTasks({ tasks });
    this.#announce(tasks.filter((_, index) => outcomes[index]?.outcome === "stored"));
    return submissions.map((submission, index) => this.#answer(outcomes[index], submission));
  }

  #newTask(submission: Submission, taskId: string, span: OpenSpan | undefined): NewTask {
    const { deploymentId, maintenance, retention } = this.#options;
    const facts = { deploymentId, taskId, span, retention: retention() };
    const task = toNewTask(submission, facts);
    if (task.startByMs !== undefined) {
      maintenance.expirer.expect(task.startByMs);
    }
    return task;
  }

  #answer(outcome: StoreOutcome | undefined, submission: Submission): Submitted | Problem {
    if (outcome === undefined) {
      throw new Error("the storage answered less than it was asked");
    }
    const { metrics, slots } = this.#options;
    const { name, queueLimit } = submission.endpoint;
    if (outcome.outcome === "stored") {
      metrics?.taskSubmitted(name);
    }
    return toSubmitted(outcome, submission, () =>
      retryAfter({ queueLimit, slots: slots(name), meanRunMs: this.runTimes.mean(name) }),
    );
  }

  /** These tasks were stored as queued, to be claimed now or when they are due. */
  #announce(tasks: readonly NewTask[]): void {
    const { deploymentId, notifier } = this.#options;
    for (const [endpoint, keys] of this.#backlog.add(tasks)) {
      notifier?.publish({ kind: "queued", deploymentId, endpoint, keys });
    }
    this.wake();
  }

  // Claim: queued tasks are taken for the slots that are free, and never more.

  /** From now on, claims tasks for the task endpoints of this manifest. */
  serve(manifest: ServiceManifest): void {
    this.#backlog.serve(calledEndpoints(manifest).filter(({ kind }) => kind === "task"));
    this.wake();
  }

  /** Fails waiting tasks of endpoints that the revision which serves now lacks. */
  failUnserved(): void {
    this.#unserved?.look();
  }

  /** A slot became free, or tasks came: claims waiting tasks for the slots that are free now. */
  wake(): void {
    this.#suspects.wake();
    if (!this.#stopped && !this.#backlog.isEmpty) {
      void this.#claims.run();
    }
  }

  async #claim(): Promise<void> {
    // One message from a worker may free many slots in turn: one claim covers all of them.
    await Promise.resolve();
    const { deploymentId, storage, pool, now, log, onStorage, onTasksWait } = this.#options;
    const reserved = this.#backlog.reserve();
    const { claims, slots, isShort } = reserved;
    if (isShort) {
      pool.crowded();
      onTasksWait();
    }
    if (claims.length === 0) {
      return;
    }
    const claiming = this.#recovery.callBegins();
    try {
      const claimed = await storage.claimTasks({ deploymentId, nowMs: now(), claims });
      this.#recovery.doubt(claimed.doubtful ?? []);
      const runnable = claimed.tasks.filter((each) => !this.#failIfRefused(each));
      for (const { claimed: one, slot } of this.#backlog.assign(runnable, reserved)) {
        this.#start(one, slot);
      }
      onStorage("claims", true);
      if (this.#backlog.answered(reserved, claimed)) {
        this.wake();
      }
    } catch (err) {
      this.#recovery.doubt(claims.map(({ leaseId }) => leaseId));
      this.#backlog.failed(reserved);
      onStorage("claims", false);
      log.error({ err }, "tasks could not be claimed");
    } finally {
      claiming.end();
      // Those that `assign` has not handed out.
      for (const slot of [...slots.values()].flat()) {
        slot.release();
      }
    }
  }

  /** Fails a claimed task that the serving revision cannot run, and then returns true. */
  #failIfRefused(claimed: ClaimedTask): boolean {
    const refusal = this.#options.revisions?.refusal(claimed);
    if (refusal === undefined) {
      return false;
    }
    this.#completer.refuse(claimed, refusal, unbegunAt(this.#backlog.find(claimed.task.endpoint)));
    // Its slot was not used, and more may be waiting.
    const { endpoint, key = "" } = claimed.task;
    this.#backlog.hint(endpoint, [key]);
    this.wake();
    return true;
  }

  /** Starts a claimed task in its slot, or gives it back where it found none. */
  #start(claimed: ClaimedTask, slot: Slot | undefined): void {
    const endpoint = this.#backlog.find(claimed.task.endpoint);
    if (endpoint && slot) {
      this.begin(claimed, endpoint, slot);
    } else {
      // The service was replaced by one without this endpoint while the claim was under way.
      slot?.release();
      this.#completer.giveBack(attemptOf(claimed), unbegunAt(endpoint));
    }
  }

  /** A task of this endpoint may be waiting, of one of these keys if they are given. */
  #came(endpoint: string, keys: readonly string[] | undefined): void {
    this.#backlog.came(endpoint, keys);
    this.#suspects.freed(endpoint);
    this.wake();
  }

  // Attempt: a worker runs the task. What it reports goes through `Attempts`.

  /** Runs a claimed task in a slot, and releases the slot when the attempt ends. */
  begin(claimed: ClaimedTask, endpoint: EndpointManifest, slot: Slot): void {
    const { task, leaseId } = claimed;
    const { tracing, metrics } = this.#options;
    const span = tracing && attemptBegan(tracing, task, this.#options);
    this.#attempts.begin({ task, leaseId, endpoint, slot, span }, claimed.arguments);
    this.runTimes.begin(endpoint.name);
    this.#changes.publish(task.taskId, task);
    const waitSeconds = ((task.startedAtMs ?? task.runAtMs) - task.runAtMs) / 1_000;
    metrics?.taskStarted(endpoint.name, waitSeconds);
  }

  /** Goes on with an attempt that another node began, and which its worker still runs. */
  adopt(begun: BegunAttempt, adopt: Adopt): void {
    this.#attempts.adopt(begun, adopt);
    this.#changes.publish(begun.task.taskId, begun.task);
  }

  /** Returns a task to the queue that was claimed by another node, and does not run any more. */
  giveBack(leased: LeasedTask): void {
    this.#completer.giveBack(attemptOf(leased));
  }

  // End: what became of the attempt is stored, by the `Completer`, and callers learn it.

  #ended(running: RunningAttempt, end: ExecutionEnd): Promise<EndRecord> {
    const { begun, startedMs } = running;
    const { task, endpoint, slot, span } = begun;
    // The worker takes its next call while this end is being stored.
    slot.release();
    const runMs = performance.now() - startedMs;
    this.runTimes.add(endpoint.name, runMs);
    this.wake();
    running.logEnd(end);
    const outcome = this.#outcome(end, begun);
    span?.end(attemptEnd(end, outcome));
    const { takeEvents } = running;
    const used = running.used(end);
    const isTimed = endpoint.byKey?.fair === "seconds";
    const ran = { task, runSeconds: runMs / 1_000, takeEvents, alone: slot.alone, used, isTimed };
    return this.#completer.record(attemptOf(begun), this.#attempts.toRecord(running, outcome), ran);
  }

  /** What to record of an attempt whose execution ended like this. */
  #outcome(end: ExecutionEnd, begun: BegunAttempt): AttemptEnd {
    const { now } = this.#options;
    switch (end.kind) {
      case "result":
        return { status: "success", result: end.result };
      case "failure":
        return failedEnd(failures.functionFailed(end.failure), begun, now(), end);
      case "lost":
        return end.alone
          ? { status: "worker_lost", failure: failures.workerLost(end) }
          : { ...returned(failures.lostBesideOthers(end.message)), suspect: true };
      case "cut_off":
        return { status: "node_lost", failure: failures.cutOff(end.message) };
      case "displaced":
        return displacedEnd(end, begun.endpoint);
      case "unavailable":
        return { ...returned(end.problem.rawMessage), runAtMs: now() + BLOB_STORE_RETRY_PAUSE_MS };
      case "aborted":
        if (end.reason === "timeout") {
          const failed = failedEnd(failures.timedOut(begun.endpoint), begun, now());
          // It did not hear the abort, so that its worker had to be killed.
          return end.killed && failed.status === "queued" ? { ...failed, suspect: true } : failed;
        }
        return end.reason === "cancelled"
          ? { status: "cancelled" }
          : returned("the node or its worker was stopped");
    }
  }

  /** The end of an attempt is stored: its task has ended, or waits for another attempt. */
  #recorded(task: Task, end: AttemptEnd, ran: RanAttempt | undefined): void {
    this.#attempts.forget(task);
    if (end.status === "success") {
      this.tasks.remember(task, end.result);
    }
    this.#changes.publish(task.taskId, task);
    const outcome = countedAs(task, end);
    // A task that was claimed and returned without having run is not counted.
    if (ran || outcome !== "returned") {
      this.#options.metrics?.taskFinished(task.endpoint, outcome, ran?.runSeconds);
    }
    if (task.status === "queued") {
      this.requeued(task, isSuspect(end, ran));
    }
    this.#peers.freed(this.#backlog.find(task.endpoint), task);
  }

  /** A task is queued again, to be claimed when it is due. */
  requeued({ endpoint, runAtMs, key }: Task, asSuspect = false): void {
    const { deploymentId, notifier, now, onTasksWait } = this.#options;
    if (runAtMs > now()) {
      // One that was stored without a key is given it when it is due.
      this.#backlog.expect(runAtMs);
    } else if (asSuspect) {
      this.#suspects.came(endpoint);
      onTasksWait();
    } else {
      const keys = this.#backlog.returned(endpoint, key);
      notifier?.publish({ kind: "queued", deploymentId, endpoint, keys });
      this.#came(endpoint, keys);
    }
  }

  // Cancel, and what time and other nodes do to a task.

  /**
   * Cancels a queued task or, with `abort`, a running one, on whichever node it runs. Rejects with
   * TASK_NOT_FOUND, TASK_FINISHED or TASK_ALREADY_STARTED.
   */
  async cancel(question: TaskQuestion, abort: boolean): Promise<Task> {
    const { taskId } = await this.tasks.find(question);
    const { deploymentId, storage, now, metrics, graceMs } = this.#options;
    const asked = { deploymentId, taskId, nowMs: now() };
    const found = await storage.cancelTask(asked).catch((err: unknown) => {
      // The cancellation may have been stored all the same, so waiting callers read the task again.
      this.#changes.publish(taskId);
      throw err;
    });
    if (found === undefined) {
      throw notFound(taskId, storage);
    }
    if (found.outcome === "cancelled") {
      metrics?.taskFinished(found.task.endpoint, "cancelled", undefined);
      this.#changes.publish(taskId, found.task);
      return found.task;
    }
    if (isFinal(found.task.status) || !abort) {
      throw tooLate(found.task, "cancelled", "is already running: add abort=true to stop it");
    }
    const waitMs = graceMs + ABORT_MARGIN_MS;
    const ended = this.tasks.waitUntil({ ...question, waitMs }, (one) => one.status !== "running");
    const aborted = this.#attempts.abort(taskId) ? undefined : this.#peers.requestAbort(taskId);
    // Together: either may fail while the other is under way.
    const [task] = await Promise.all([ended, aborted]);
    // It went back to the queue before the abort reached it.
    if (task.status === "queued") {
      return this.cancel(question, true);
    }
    if (task.status !== "cancelled") {
      // It ended by itself, which the error says, or it still runs.
      throw tooLate(task, "cancelled", `could not be stopped within ${waitMs} ms: try again`);
    }
    return task;
  }

  /** What maintenance tells of the tasks: what has become of them, and what is to do. */
  get #maintained(): MaintainedQueue {
    const { metrics, pool, revisions, onStorage, onTasksWait, onSchedule } = this.#options;
    const [attempts, changes] = [this.#attempts, this.#changes];
    return {
      onRescued: (task) => {
        changes.publish(task.taskId, task);
        const isQueued = task.status === "queued";
        metrics?.taskFinished(task.endpoint, isQueued ? "returned" : "failure", undefined);
        if (isQueued) {
          this.requeued(task);
        }
        this.#peers.freed(this.#backlog.find(task.endpoint), task);
      },
      onExpired: (task) => {
        changes.publish(task.taskId, task);
        metrics?.taskFinished(task.endpoint, "expired", undefined);
      },
      onDue: (name) => {
        this.#backlog.found(name);
        return revisions?.lacks(name) ? this.#unserved?.found() : this.#peers.queued(name, []);
      },
      onSuspects: (endpoint, count) => {
        // A node without workers starts none for it.
        if ((pool.size > 0 || pool.ready) && this.#suspects.hint(endpoint, count)) {
          onTasksWait();
        }
      },
      onSchedule: (atMs) => onSchedule?.(atMs),
      awaited: () => changes.awaited,
      onMissed: (taskId) => changes.hear({ taskId }),
      onStorage: (answers) => onStorage("heartbeat", answers),
      leaseIds: () => attempts.leaseIds(),
      abort: (taskId) => void attempts.abort(taskId),
    };
  }

  // Stop: first the claims, then, when the pool has drained, what is left to store.

  /** Starts no more tasks. Callers can still read tasks and wait for the running ones. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#unserved?.[Symbol.asyncDispose]();
    this.#backlog[Symbol.dispose]();
    await this.#claims[Symbol.asyncDispose]();
    await this.#suspects[Symbol.asyncDispose]();
    await this.#recovery[Symbol.asyncDispose]();
    this.#peers[Symbol.dispose]();
  }

  /** Resolves when every end that was reported, under this lease, is recorded or given up. */
  recorded(leaseId?: string): Promise<void> {
    return this.#completer.recorded(leaseId);
  }

  /**
   * Resolves when the storage has every end, or when the time is over: attempts without an end then
   * run again. Callers that still wait are refused.
   */
  async settled(withinMs: number): Promise<void> {
    const timer = setTimeout(() => this.#attempts.giveUp(), withinMs);
    await this.#completer.settled(withinMs);
    await this.#attempts[Symbol.asyncDispose]();
    clearTimeout(timer);
    this.#changes.close();
  }

  /** Maintenance tells it nothing more. */
  [Symbol.dispose](): void {
    this.#unregister();
  }
}
