/**
 * The task queue of one deployment as callers use it: submit, read, wait,
 * cancel, retry, watch. `dispatcher.ts` brings tasks to workers.
 */
import { Problem } from "../errors.ts";
import type { DeploymentMetricsOf } from "../metrics/metrics.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Payload } from "../protocol/messages.ts";
import type { TaskListing } from "../storage/listing.ts";
import type { PiecePosition } from "../storage/pieces.ts";
import type { NewTask, Storage, SubmitOutcome } from "../storage/storage.ts";
import { isTaskId } from "../tasks/id.ts";
import { hasExpired, isFinal, type Task } from "../tasks/task.ts";
import type { DeploymentTracing, OpenSpan } from "../tracing/tracing.ts";
import type { Attempts } from "./attempts.ts";
import { cancelTask } from "./cancel.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { type RunTimes, retryAfter } from "./estimate.ts";
import { type WatchedEvent, type WatchPosition, watchEvents } from "./events/watch.ts";
import type { Expirer } from "./maintenance/expirer.ts";
import type { Peers } from "./peers.ts";
import { readPieces, type StreamEvent } from "./pieces/reader.ts";
import { type QueuePosition, QueuePositions } from "./position.ts";
import { notFinished, notFound } from "./refusals.ts";
import {
  type Retention,
  type Submission,
  type SubmissionOptions,
  type Submitted,
  toNewTask,
  toSubmitted,
} from "./submission.ts";
import { tracedSubmit, tracedSubmits } from "./traced.ts";
import type { Changes } from "./waits/changes.ts";
import type { FinishedTask, RecentTasks } from "./waits/recent-tasks.ts";
import { waitFor } from "./waits/wait.ts";

interface QueueOptions {
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
  /** The number of calls of an endpoint that this node can run at a time. */
  readonly slots: (endpoint: string) => number;
  /** The worker that an endpoint waits for, for people. Default: it waits for none. */
  readonly awaited?: (endpoint: string) => string | undefined;
  readonly graceMs: number;
  readonly retention: () => Retention;
  readonly newId: () => string;
  readonly now: () => number;
  /** Default: nothing is counted. */
  readonly metricsOf?: DeploymentMetricsOf | undefined;
  /** Default: nothing is traced. */
  readonly tracing?: DeploymentTracing | undefined;
}

/** Which task, and how long to wait for it. */
export interface TaskQuestion {
  readonly taskId: string;
  /** If set, a task of another endpoint is not found. */
  readonly endpoint?: string | undefined;
  /** Default and 0: answers at once. */
  readonly waitMs?: number;
  /** Ends the wait when the caller has gone. */
  readonly signal?: AbortSignal;
}

/** A task and what it was submitted with. */
export interface SubmittedArguments {
  readonly task: Task;
  readonly payload: Payload;
}

export class Queue {
  readonly #options: QueueOptions;
  readonly #positions: QueuePositions;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#positions = new QueuePositions(options);
  }

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
    const { tracing, newId } = this.#options;
    if (tracing === undefined) {
      return this.#submit(submission);
    }
    const taskId = newId();
    return tracedSubmit(tracing, { submission, taskId }, (span) =>
      this.#submit(submission, taskId, span),
    );
  }

  /**
   * Submits calls in one transaction; resolves with the task of each, or with
   * the problem for which it was refused. All of them wait for a claim, even
   * when slots are free, so that the one of the highest priority starts first.
   */
  async submitAll(submissions: readonly Submission[]): Promise<(Submitted | Problem)[]> {
    const { tracing, newId } = this.#options;
    // Ids of one millisecond have no order; sorted, they keep the order of the calls.
    const ids = submissions.map(() => newId()).sort();
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
    const { storage, dispatcher } = this.#options;
    const tasks = submissions.map((each, at) => this.#newTask(each, ids[at], spans[at]));
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
   * The position of a queued task. Undefined for any other task, and beyond the
   * rate limit of lookups.
   */
  place(task: Task): Promise<QueuePosition | undefined> | undefined {
    return task.status === "queued" ? this.#positions.find(task) : undefined;
  }

  /** One page of the deployment's tasks without expired ones; see `Storage.listTasks`. */
  async list(listing: Omit<TaskListing, "deploymentId">): ReturnType<Storage["listTasks"]> {
    const { deploymentId, storage, now } = this.#options;
    const { tasks, nextBefore } = await storage.listTasks({ ...listing, deploymentId });
    const nowMs = now();
    return { tasks: tasks.filter((task) => !hasExpired(task, nowMs)), nextBefore };
  }

  /**
   * Reads a task; with `waitMs`, after its next change or when the time is over.
   * A final task is answered at once. Rejects with TASK_NOT_FOUND or
   * TOO_MANY_WAITING.
   */
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
   * Reads a task with its result; with `waitMs`, after its end. The task is not
   * final when the time was too short. Rejects as `get` does.
   */
  result(question: TaskQuestion): Promise<FinishedTask> {
    const recent = this.#takeRecent(question);
    if (recent) {
      return Promise.resolve(recent);
    }
    const finding = question.waitMs
      ? this.#waitUntil(question, hasEnded, () => this.#findState(question))
      : this.#find(question);
    return finding.then((task) => this.#takeRecent(question) ?? this.#readResult(task));
  }

  /**
   * Cancels a queued task or, with `abort`, a running one. Rejects with
   * TASK_NOT_FOUND, TASK_FINISHED or TASK_ALREADY_STARTED.
   */
  async cancel(question: TaskQuestion, abort: boolean): Promise<Task> {
    const { taskId } = await this.#find(question);
    return cancelTask(taskId, abort, {
      ...this.#options,
      untilEnded: (waitMs) =>
        this.#waitUntil({ ...question, waitMs }, ({ status }) => status !== "running"),
    });
  }

  /** Reads a task with the arguments that it was submitted with. Rejects with TASK_NOT_FOUND. */
  async arguments(question: TaskQuestion): Promise<SubmittedArguments> {
    const task = await this.#find(question);
    return { task, payload: await this.#readArguments(task) };
  }

  /**
   * Submits a new task with the arguments of a finished one. A repeated
   * idempotency key returns the task of the first time. Rejects with
   * TASK_NOT_FOUND, TASK_NOT_FINISHED, or as `submit` does.
   */
  async retry(
    question: TaskQuestion & Pick<SubmissionOptions, "idempotency" | "origin">,
    endpointOf: (name: string) => EndpointManifest,
  ): Promise<Submitted> {
    const original = await this.#find(question);
    if (!isFinal(original.status)) {
      throw notFinished(original);
    }
    const payload = await this.#readArguments(original);
    const { idempotency, origin } = question;
    const { taskId, priority, trace: retriedTrace } = original;
    const options = { retryOf: taskId, priority, idempotency, origin, retriedTrace };
    return this.submit(endpointOf(original.endpoint), payload, options);
  }

  /** Streams the task's events and pieces after a position, as they come, until it has ended. */
  async *watch(question: TaskQuestion, after: WatchPosition): AsyncGenerator<WatchedEvent> {
    const { deploymentId, storage, changes } = this.#options;
    const { taskId } = await this.#find(question);
    const key = { deploymentId, taskId };
    yield* watchEvents({ storage, changes, key, after, signal: question.signal });
  }

  /**
   * Streams the pieces of the task's result after a position, as they come. Returns the task
   * when it has ended; undefined when the caller has gone. Rejects as `get` does.
   */
  async *pieces(
    question: TaskQuestion,
    after: PiecePosition,
  ): AsyncGenerator<StreamEvent, Task | undefined> {
    const { deploymentId, storage, changes } = this.#options;
    const { taskId, signal } = question;
    await this.#find(question);
    const key = { deploymentId, taskId };
    const ended = yield* readPieces({ storage, changes, key, after, signal });
    if (ended === undefined && !signal?.aborted) {
      throw notFound(taskId);
    }
    return ended;
  }

  async #readArguments({ taskId }: Task): Promise<Payload> {
    const { deploymentId, storage } = this.#options;
    const payload = await storage.getArguments({ deploymentId, taskId });
    if (payload === undefined) {
      throw notFound(taskId);
    }
    return payload;
  }

  async #readResult(task: Task): Promise<FinishedTask> {
    const { deploymentId, storage } = this.#options;
    const { taskId, status } = task;
    const result =
      status === "success" ? await storage.getResult({ deploymentId, taskId }) : undefined;
    return { task, result };
  }

  #count({ endpoint }: Submission, { outcome }: SubmitOutcome): void {
    if (outcome === "stored") {
      this.#options.metricsOf?.(this.#options.deploymentId)?.taskSubmitted(endpoint.name);
    }
  }

  #submit(submission: Submission, taskId?: string, span?: OpenSpan): Promise<Submitted> {
    const { endpoint } = submission;
    const task = this.#newTask(submission, taskId, span);
    return this.#options.dispatcher.submit(task, endpoint).then((outcome) => {
      this.#count(submission, outcome);
      const submitted = toSubmitted(outcome, submission, () => this.#retryAfter(endpoint));
      if (submitted instanceof Problem) {
        throw submitted;
      }
      return submitted;
    });
  }

  #newTask(submission: Submission, taskId = this.#options.newId(), span?: OpenSpan): NewTask {
    const { deploymentId, expirer, retention } = this.#options;
    const task = toNewTask(submission, { deploymentId, taskId, span, retention: retention() });
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

  /** Reads the task. A task that has just finished here is read from memory. */
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

  /** Reads the task's state. A task that runs here is read from memory, without its progress. */
  #findState(question: TaskQuestion): Task | Promise<Task> {
    const task = this.#options.attempts.get(question.taskId);
    return task && isAsked(task, question) ? task : this.#find(question);
  }

  #waitUntil(
    question: TaskQuestion,
    enough: (task: Task) => boolean,
    read: () => Task | Promise<Task> = () => this.#find(question),
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

function hasEnded({ status }: Task): boolean {
  return isFinal(status);
}

function isAsked(task: Task, { endpoint }: TaskQuestion): boolean {
  return endpoint === undefined || task.endpoint === endpoint;
}
