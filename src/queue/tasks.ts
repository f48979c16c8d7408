/**
 * What callers ask of a task that exists: its state, its place in the queue, its arguments, its
 * result, its events and pieces. None of it changes a task; `queue.ts` does.
 *
 * A task that has just ended here, or that runs here, is read from memory. Everything else comes
 * from the storage, so a caller may ask any node.
 */
import { problem } from "../errors.ts";
import type { Payload } from "../protocol/messages.ts";
import { isMountName } from "../service/mounts.ts";
import type { TaskListing } from "../storage/listing.ts";
import type { PiecePosition } from "../storage/pieces.ts";
import type { Storage } from "../storage/storage.ts";
import { cellOfTaskId, HOME_CELL, isTaskId } from "../tasks/id.ts";
import { hasExpired, isFinal, type Task } from "../tasks/task.ts";
import type { Attempts } from "./attempts.ts";
import type { Backlog } from "./claims/backlog.ts";
import { type QueuePosition, QueuePositions, type QueuePositionsOptions } from "./estimate.ts";
import { type WatchedEvent, type WatchPosition, watchEvents } from "./events/watch.ts";
import { readPieces, type StreamEvent } from "./pieces/reader.ts";
import type { Changes } from "./waits/changes.ts";
import { type FinishedTask, RecentTasks } from "./waits/recent-tasks.ts";
import { type WaitForOptions, waitFor } from "./waits/wait.ts";

interface TasksOptions extends QueuePositionsOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly changes: Changes;
  readonly attempts: Pick<Attempts, "get">;
  readonly backlog: Pick<Backlog, "byKey" | "gathers">;
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

export class Tasks {
  readonly #options: TasksOptions;
  readonly #positions: QueuePositions;
  readonly #recent = new RecentTasks();

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#positions = new QueuePositions(options);
  }

  /**
   * Reads a task; with `waitMs`, after its next change or when the time is over.
   * A final task is answered at once. Rejects with TASK_NOT_FOUND or
   * TOO_MANY_WAITING.
   */
  async get(question: TaskQuestion): Promise<Task> {
    const task = await this.find(question);
    if (!question.waitMs || isFinal(task.status)) {
      return task;
    }
    const { status, attempt, lastSequence } = task;
    return this.waitUntil(question, (now) => {
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
    const finding = question.waitMs ? this.#waitForEnd(question) : this.find(question);
    return finding.then((task) => this.#takeRecent(question) ?? this.#readResult(task));
  }

  /** Reads a task with the arguments that it was submitted with. Rejects with TASK_NOT_FOUND. */
  async arguments(question: TaskQuestion): Promise<SubmittedArguments> {
    const task = await this.find(question);
    const { deploymentId, storage } = this.#options;
    const payload = await storage.getArguments({ deploymentId, taskId: task.taskId });
    if (payload === undefined) {
      throw notFound(task.taskId, storage);
    }
    return { task, payload };
  }

  /**
   * The position of a queued task. Undefined for any other task, and beyond the
   * rate limit of lookups.
   */
  place(task: Task): Promise<QueuePosition | undefined> | undefined {
    // Keys in turn have no order among each other that could be counted.
    const isCounted = task.status === "queued" && !this.#options.backlog.byKey(task.endpoint);
    return isCounted ? this.#positions.find(task) : undefined;
  }

  /** Whether tasks of an endpoint wait for others of their batch. */
  gather(endpoint: string): boolean {
    return this.#options.backlog.gathers(endpoint);
  }

  /** One page of the deployment's tasks without expired ones; see `Storage.listTasks`. */
  async list(listing: Omit<TaskListing, "deploymentId">): ReturnType<Storage["listTasks"]> {
    const { deploymentId, storage, now } = this.#options;
    const { tasks, nextBefore } = await storage.listTasks({ ...listing, deploymentId });
    const nowMs = now();
    return { tasks: tasks.filter((task) => !hasExpired(task, nowMs)), nextBefore };
  }

  /** Streams the task's events and pieces after a position, as they come, until it has ended. */
  async *watch(question: TaskQuestion, after: WatchPosition): AsyncGenerator<WatchedEvent> {
    const { deploymentId, storage, changes } = this.#options;
    const { taskId } = await this.find(question);
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
    await this.find(question);
    const key = { deploymentId, taskId };
    const ended = yield* readPieces({ storage, changes, key, after, signal });
    if (ended === undefined && !signal?.aborted) {
      throw notFound(taskId, storage);
    }
    return ended;
  }

  /** Reads the task. Rejects with TASK_NOT_FOUND, also when it has expired. */
  find(question: TaskQuestion): Promise<Task> {
    const recent = this.#recent.get(question.taskId, this.#options.now())?.task;
    return findTask(question, this.#options, recent);
  }

  /** Waits until the task is `enough`; resolves with it, also when the time is over. */
  waitUntil(question: TaskQuestion, enough: (task: Task) => boolean): Promise<Task> {
    return this.#wait(question, { read: () => this.find(question), enough });
  }

  #waitForEnd(question: TaskQuestion): Promise<Task> {
    return this.#wait(question, {
      endsOnly: true,
      read: () => this.#findState(question),
      enough: ({ status }) => isFinal(status),
    });
  }

  #wait(
    { taskId, waitMs = 0, signal }: TaskQuestion,
    until: Pick<WaitForOptions, "endsOnly" | "read" | "enough">,
  ): Promise<Task> {
    return waitFor({ changes: this.#options.changes, taskId, waitMs, signal, ...until });
  }

  /** A task was deleted, or another node knows more of it: it is read from the storage from now on. */
  forget(taskId: string): void {
    this.#recent.take(taskId, 0);
  }

  /** Hints of other nodes were lost: any may have been deleted. */
  forgetAll(): void {
    this.#recent.forgetAll();
  }

  /** A task has succeeded here: callers that wait for it are answered from memory. */
  remember(task: Task, result: Payload): void {
    this.#recent.add(task, result);
  }

  async #readResult(task: Task): Promise<FinishedTask> {
    const { deploymentId, storage } = this.#options;
    const { taskId, status } = task;
    // A server has answered to a task that has failed, too.
    const hasResult = status === "success" || (status === "failure" && isMountName(task.endpoint));
    const result = hasResult ? await storage.getResult({ deploymentId, taskId }) : undefined;
    return { task, result };
  }

  #takeRecent(question: TaskQuestion): FinishedTask | undefined {
    const found = this.#recent.take(question.taskId, this.#options.now());
    return found && isAsked(found.task, question) ? found : undefined;
  }

  /** Reads the task's state. A task that runs here is read from memory, without its progress. */
  #findState(question: TaskQuestion): Task | Promise<Task> {
    const task = this.#options.attempts.get(question.taskId);
    return task && isAsked(task, question) ? task : this.find(question);
  }
}

/**
 * Reads a task, unless it is known. Rejects with TASK_NOT_FOUND, also when it has expired, or is of
 * another endpoint.
 */
export async function findTask(
  question: TaskQuestion,
  { deploymentId, storage, now }: Pick<TasksOptions, "deploymentId" | "now"> & StoredTask,
  known?: Task,
): Promise<Task> {
  const { taskId } = question;
  const task =
    known ?? (isTaskId(taskId) ? await storage.getTask({ deploymentId, taskId }) : undefined);
  if (task === undefined && isTaskId(taskId)) {
    throw notFound(taskId, storage, await storage.findDeleted({ deploymentId, taskId }));
  }
  if (task === undefined || hasExpired(task, now()) || !isAsked(task, question)) {
    throw notFound(taskId, storage);
  }
  return task;
}

interface StoredTask {
  readonly storage: Pick<Storage, "getTask" | "findDeleted" | "cells">;
}

const HOME_ALONE: ReadonlySet<number> = new Set([HOME_CELL]);

/** `deletedAtMs`: when it was deleted. Default: it was not, or nobody looked. */
export function notFound(
  taskId: string,
  { cells = HOME_ALONE }: Pick<Storage, "cells">,
  deletedAtMs?: number,
): Error {
  const cell = isTaskId(taskId) ? cellOfTaskId(taskId) : HOME_CELL;
  if (!cells.has(cell)) {
    const message = `task ${taskId} is of cell ${cell}, which this platform does not have: ask the platform that gave you the id`;
    return problem("TASK_NOT_FOUND", message, { metadata: { task_id: taskId } });
  }
  if (deletedAtMs !== undefined) {
    const deletedAt = new Date(deletedAtMs).toISOString();
    const metadata = { task_id: taskId, deleted_at: deletedAt };
    return problem("TASK_NOT_FOUND", `task ${taskId} was deleted on ${deletedAt}`, { metadata });
  }
  return problem("TASK_NOT_FOUND", `task ${taskId.slice(0, 64)} does not exist or has expired`);
}

export function notFinished({ taskId, status }: Task): Error {
  const message = `task ${taskId} is ${status}: ask again when it has finished, or with wait`;
  return problem("TASK_NOT_FINISHED", message, { metadata: { task_id: taskId, status } });
}

/** For a task that stays as it is, because it has ended or still runs; `why` says the latter. */
export function tooLate(
  { taskId, status }: Task,
  what: "cancelled" | "changed",
  why: string,
): Error {
  if (isFinal(status)) {
    const message = `task ${taskId} has already ended (${status}) and cannot be ${what}`;
    return problem("TASK_FINISHED", message, { metadata: { task_id: taskId, status } });
  }
  const metadata = { task_id: taskId };
  return problem("TASK_ALREADY_STARTED", `task ${taskId} ${why}`, { metadata });
}

function isAsked(task: Task, { endpoint }: TaskQuestion): boolean {
  return endpoint === undefined || task.endpoint === endpoint;
}
