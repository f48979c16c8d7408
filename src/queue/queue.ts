/**
 * The task queue of one deployment as its callers use it: submit, read, wait,
 * cancel, retry, watch. How tasks get to workers is the dispatcher's matter.
 */
import { Problem, problem } from "../errors.ts";
import type { MetricsOf } from "../metrics/metrics.ts";
import type { EndpointManifest } from "../sdk/manifest.ts";
import type { Payload } from "../sdk/protocol.ts";
import type { Storage, SubmitOutcome, TaskListing } from "../storage/storage.ts";
import type { TaskEvent } from "../tasks/event.ts";
import { isTaskId } from "../tasks/id.ts";
import { isFinal, type Task } from "../tasks/task.ts";
import type { Attempts } from "./attempts.ts";
import type { Changes } from "./changes.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { type RunTimes, retryAfter } from "./estimate.ts";
import type { Expirer } from "./expirer.ts";
import type { Peers } from "./peers.ts";
import { Places, type QueuePlace } from "./places.ts";
import type { FinishedTask, RecentTasks } from "./recent.ts";
import { finished, notFinished, notFound } from "./refusals.ts";
import {
  type Submission,
  type SubmitOptions,
  type Submitted,
  toNewTask,
  toSubmitted,
} from "./submission.ts";
import { waitFor } from "./wait.ts";
import { watchEvents } from "./watch.ts";

/** After this long an abort has killed what did not listen, and is recorded. */
const ABORT_MARGIN_MS = 5_000;

export interface QueueOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly dispatcher: Dispatcher;
  readonly attempts: Attempts;
  /** The other nodes on the same database; undefined where there are none. */
  readonly peers: Peers | undefined;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  readonly expirer: Expirer;
  readonly runTimes: RunTimes;
  /** How many calls of an endpoint this node can run at a time. */
  readonly slots: (endpoint: string) => number;
  readonly graceMs: number;
  readonly newId: () => string;
  readonly now: () => number;
  /** Default: nothing is counted. */
  readonly metricsOf?: MetricsOf | undefined;
}

/** Which task, and how long to wait for it. */
export interface TaskQuestion {
  readonly taskId: string;
  /** If set, a task of another endpoint is not found. */
  readonly endpoint?: string | undefined;
  /** 0 answers at once. */
  readonly waitMs?: number;
  /** Ends the wait when the caller has gone. */
  readonly signal?: AbortSignal;
}

export class Queue {
  readonly #options: QueueOptions;
  readonly #places: Places;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#places = new Places(options);
  }

  /**
   * Queues a call; resolves when it is stored. Rejects with QUEUE_FULL or
   * IDEMPOTENCY_KEY_REUSED.
   */
  async submit(
    endpoint: EndpointManifest,
    payload: Payload,
    options: SubmitOptions = {},
  ): Promise<Submitted> {
    const submission = { endpoint, payload, options };
    const outcome = await this.#options.dispatcher.submit(this.#newTask(submission), endpoint);
    this.#count(submission, outcome);
    const submitted = toSubmitted(outcome, submission, () => this.#retryAfter(endpoint));
    if (submitted instanceof Problem) {
      throw submitted;
    }
    return submitted;
  }

  /**
   * Queues calls in one transaction; resolves when they are stored, with the task
   * of each or the reason why it was refused. They all wait for a claim, even
   * when slots are free, so that the one of the highest priority starts first.
   */
  async submitAll(submissions: readonly Submission[]): Promise<(Submitted | Problem)[]> {
    const { storage, dispatcher, newId } = this.#options;
    // Ids of one millisecond are in no order; sorted, they keep that of the calls.
    const ids = submissions.map(() => newId()).sort();
    const tasks = submissions.map((submission, index) => this.#newTask(submission, ids[index]));
    const outcomes = tasks.length === 0 ? [] : await storage.submitTasks({ tasks });
    dispatcher.stored(tasks.filter((_, index) => outcomes[index]?.outcome === "stored"));
    return submissions.map((submission, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined) {
        throw new Error("the storage answered less than it was asked");
      }
      this.#count(submission, outcome);
      return toSubmitted(outcome, submission, () => this.#retryAfter(submission.endpoint));
    });
  }

  /**
   * Where a task stands that waits for a worker. undefined for any other, and
   * when more positions are asked for than are counted.
   */
  async place(task: Task): Promise<QueuePlace | undefined> {
    return task.status === "queued" ? this.#places.find(task) : undefined;
  }

  /** One page of the deployment's tasks, without those that have expired; see the storage port. */
  async list(listing: Omit<TaskListing, "deploymentId">): ReturnType<Storage["listTasks"]> {
    const { deploymentId, storage, now } = this.#options;
    const { tasks, nextBefore } = await storage.listTasks({ ...listing, deploymentId });
    const nowMs = now();
    return { tasks: tasks.filter((task) => !hasExpired(task, nowMs)), nextBefore };
  }

  /** The task; with `waitMs`, when it next changes, unless it is final already. */
  async get(question: TaskQuestion): Promise<Task> {
    const task = await this.#find(question);
    if (!question.waitMs || isFinal(task.status)) {
      return task;
    }
    const { status, attempt, lastSequence } = task;
    return this.#waitUntil(question, (now) => {
      return now.status !== status || now.attempt !== attempt || now.lastSequence !== lastSequence;
    });
  }

  /**
   * A task and what it returned, waiting for its end when asked. The task is
   * not final when the time was not enough.
   */
  async result(question: TaskQuestion): Promise<FinishedTask> {
    const recent = this.#takeRecent(question);
    if (recent) {
      return recent;
    }
    const task = question.waitMs
      ? await this.#waitUntil(
          question,
          ({ status }) => isFinal(status),
          () => this.#findState(question),
        )
      : await this.#find(question);
    const { deploymentId, storage } = this.#options;
    const { taskId } = task;
    return (
      this.#takeRecent(question) ?? {
        task,
        result:
          task.status === "success" ? await storage.getResult({ deploymentId, taskId }) : undefined,
      }
    );
  }

  /** Cancels a task that is queued, or, with `abort`, one that runs. */
  async cancel(question: TaskQuestion, abort: boolean): Promise<Task> {
    const { deploymentId, storage, attempts, peers, changes, graceMs, now } = this.#options;
    const { taskId } = await this.#find(question);
    const key = { deploymentId, taskId };
    const outcome = await storage.cancelTask({ ...key, nowMs: now() }).catch((err: unknown) => {
      // It may have been cancelled all the same: those who wait look for themselves.
      changes.publish(taskId);
      throw err;
    });
    if (outcome === undefined) {
      throw notFound(taskId);
    }
    if (outcome.outcome === "cancelled") {
      const metrics = this.#options.metricsOf?.(deploymentId);
      metrics?.taskFinished(outcome.task.endpoint, "cancelled", undefined);
      changes.publish(taskId, outcome.task);
      return outcome.task;
    }
    if (isFinal(outcome.task.status)) {
      throw finished(outcome.task);
    }
    if (!abort) {
      const message = `task ${taskId} is already running: add abort=true to stop it`;
      throw problem("TASK_ALREADY_STARTED", message, { metadata: { task_id: taskId } });
    }
    const waitMs = graceMs + ABORT_MARGIN_MS;
    const ended = this.#waitUntil({ ...question, waitMs }, ({ status }) => status !== "running");
    const asked = attempts.abort(taskId) ? undefined : peers?.requestAbort(taskId);
    // Together: either may fail while the other is under way.
    const [task] = await Promise.all([ended, asked]);
    if (task.status === "cancelled") {
      return task;
    }
    if (isFinal(task.status)) {
      throw finished(task);
    }
    if (task.status === "queued") {
      return this.cancel(question, abort);
    }
    const message = `task ${taskId} could not be stopped within ${waitMs} ms: try again`;
    throw problem("TASK_ALREADY_STARTED", message, { metadata: { task_id: taskId } });
  }

  /** Queues a new task with the arguments of a finished one. */
  async retry(
    question: TaskQuestion,
    endpointOf: (name: string) => EndpointManifest,
  ): Promise<Task> {
    const { deploymentId, storage } = this.#options;
    const original = await this.#find(question);
    if (!isFinal(original.status)) {
      throw notFinished(original);
    }
    const { taskId } = original;
    const payload = await storage.getArguments({ deploymentId, taskId });
    if (payload === undefined) {
      throw notFound(taskId);
    }
    const options = { retryOf: taskId, priority: original.priority };
    const { task } = await this.submit(endpointOf(original.endpoint), payload, options);
    return task;
  }

  /** The task's event log from after `afterSequence`, as it grows, until the task has ended. */
  async *watch(question: TaskQuestion, afterSequence: number): AsyncGenerator<TaskEvent> {
    const { deploymentId, storage, changes } = this.#options;
    const { taskId } = await this.#find(question);
    const key = { deploymentId, taskId };
    yield* watchEvents({ storage, changes, key, afterSequence, signal: question.signal });
  }

  #count({ endpoint }: Submission, { outcome }: SubmitOutcome): void {
    if (outcome === "stored") {
      this.#options.metricsOf?.(this.#options.deploymentId)?.taskSubmitted(endpoint.name);
    }
  }

  #newTask(submission: Submission, taskId = this.#options.newId()) {
    const { deploymentId, expirer } = this.#options;
    const task = toNewTask(submission, { deploymentId, taskId });
    if (task.startByMs !== undefined) {
      expirer.expect(task.startByMs);
    }
    return task;
  }

  #retryAfter({ name, queueLimit }: EndpointManifest): number {
    const { runTimes, slots } = this.#options;
    return retryAfter({ queueLimit, slots: slots(name), meanRunMs: runTimes.mean(name) });
  }

  #takeRecent(question: TaskQuestion): FinishedTask | undefined {
    const found = this.#options.recent.take(question.taskId, this.#options.now());
    return found && isAsked(found.task, question) ? found : undefined;
  }

  /** The task as it is now. What has just finished here is known without the storage. */
  async #find(question: TaskQuestion): Promise<Task> {
    const { taskId } = question;
    const { deploymentId, storage, recent, now } = this.#options;
    const task =
      recent.get(taskId, now())?.task ??
      (isTaskId(taskId) ? await storage.getTask({ deploymentId, taskId }) : undefined);
    if (task === undefined || hasExpired(task, now()) || !isAsked(task, question)) {
      throw notFound(taskId);
    }
    return task;
  }

  /** The task with its state: what runs here is known without the storage, but for its progress. */
  async #findState(question: TaskQuestion): Promise<Task> {
    const task = this.#options.attempts.get(question.taskId);
    return task && isAsked(task, question) ? task : this.#find(question);
  }

  #waitUntil(
    question: TaskQuestion,
    enough: (task: Task) => boolean,
    read = () => this.#find(question),
  ): Promise<Task> {
    return waitFor({
      changes: this.#options.changes,
      taskId: question.taskId,
      waitMs: question.waitMs ?? 0,
      signal: question.signal,
      read,
      enough,
    });
  }
}

/** It is to be deleted, and may be gone at any moment. */
function hasExpired({ status, expiresAtMs }: Task, nowMs: number): boolean {
  return isFinal(status) && expiresAtMs <= nowMs;
}

function isAsked(task: Task, { endpoint }: TaskQuestion): boolean {
  return endpoint === undefined || task.endpoint === endpoint;
}
