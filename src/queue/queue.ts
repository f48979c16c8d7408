/**
 * The task queue of one deployment as its callers use it: submit, read, wait,
 * cancel, retry, watch. How tasks get to workers is the dispatcher's matter.
 */
import { problem } from "../errors.ts";
import type { EndpointManifest } from "../sdk/manifest.ts";
import type { Payload } from "../sdk/protocol.ts";
import type { NewTask, Storage } from "../storage/storage.ts";
import type { TaskEvent } from "../tasks/event.ts";
import { isTaskId } from "../tasks/id.ts";
import { isFinal, type Task } from "../tasks/task.ts";
import type { Attempts } from "./attempts.ts";
import type { Changes } from "./changes.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { FinishedTask, RecentTasks } from "./recent.ts";
import { waitFor } from "./wait.ts";
import { watchEvents } from "./watch.ts";

/** After this long an abort has killed what did not listen, and is recorded. */
const ABORT_MARGIN_MS = 5_000;

export interface QueueOptions {
  readonly deploymentId: string;
  readonly storage: Storage;
  readonly dispatcher: Dispatcher;
  readonly attempts: Attempts;
  readonly changes: Changes;
  readonly recent: RecentTasks;
  readonly graceMs: number;
  readonly newId: () => string;
  readonly now: () => number;
}

export interface SubmitOptions {
  readonly retryOf?: string;
  readonly idempotency?: NewTask["idempotency"];
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

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /**
   * Queues a call; resolves when it is stored. Rejects with QUEUE_FULL or
   * IDEMPOTENCY_KEY_REUSED.
   */
  async submit(
    endpoint: EndpointManifest,
    payload: Payload,
    { retryOf, idempotency }: SubmitOptions = {},
  ): Promise<{ task: Task; replayed: boolean }> {
    const { deploymentId, dispatcher, newId, now } = this.#options;
    const nowMs = now();
    const { retentionMs, priority, queueLimit } = endpoint;
    const outcome = await dispatcher.submit(
      {
        deploymentId,
        taskId: newId(),
        endpoint: endpoint.name,
        arguments: payload,
        createdAtMs: nowMs,
        runAtMs: nowMs,
        expiresAtMs: nowMs + retentionMs,
        retentionMs,
        priority,
        queueLimit,
        ...(retryOf !== undefined && { retryOf }),
        ...(idempotency !== undefined && { idempotency }),
      },
      endpoint,
    );
    switch (outcome.outcome) {
      case "stored":
        return { task: outcome.task, replayed: false };
      case "replayed":
        return { task: outcome.task, replayed: true };
      case "key_reused":
        throw problem(
          "IDEMPOTENCY_KEY_REUSED",
          `the idempotency key ${JSON.stringify(idempotency?.key)} was used with other arguments: use a new key for a new call`,
        );
      case "queue_full":
        throw problem(
          "QUEUE_FULL",
          `${outcome.queued} tasks of endpoint ${endpoint.name} are waiting, its limit is ${queueLimit}: try again later`,
          { retryAfterMs: 5_000 },
        );
    }
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
    const recent = this.#recent(question);
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
      this.#recent(question) ?? {
        task,
        result:
          task.status === "success" ? await storage.getResult({ deploymentId, taskId }) : undefined,
      }
    );
  }

  /** Cancels a task that is queued, or, with `abort`, one that runs. */
  async cancel(question: TaskQuestion, abort: boolean): Promise<Task> {
    const { deploymentId, storage, attempts, changes, graceMs, now } = this.#options;
    const { taskId } = await this.#find(question);
    const outcome = await storage.cancelTask({ deploymentId, taskId, nowMs: now() });
    if (outcome === undefined) {
      throw notFound(taskId);
    }
    if (outcome.outcome === "cancelled") {
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
    attempts.abort(taskId);
    const task = await ended;
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
    const { task } = await this.submit(endpointOf(original.endpoint), payload, { retryOf: taskId });
    return task;
  }

  /** The task's event log from after `afterSequence`, as it grows, until the task has ended. */
  async *watch(question: TaskQuestion, afterSequence: number): AsyncGenerator<TaskEvent> {
    const { deploymentId, storage, changes } = this.#options;
    const { taskId } = await this.#find(question);
    const key = { deploymentId, taskId };
    yield* watchEvents({ storage, changes, key, afterSequence, signal: question.signal });
  }

  #recent(question: TaskQuestion): FinishedTask | undefined {
    const found = this.#options.recent.get(question.taskId, this.#options.now());
    return found && isAsked(found.task, question) ? found : undefined;
  }

  /** The task as it is now. What has just finished here is known without the storage. */
  async #find(question: TaskQuestion): Promise<Task> {
    const { taskId } = question;
    const { deploymentId, storage, recent, now } = this.#options;
    const task =
      recent.get(taskId, now())?.task ??
      (isTaskId(taskId) ? await storage.getTask({ deploymentId, taskId }) : undefined);
    const expired = task !== undefined && isFinal(task.status) && task.expiresAtMs <= now();
    if (task === undefined || expired || !isAsked(task, question)) {
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

function isAsked(task: Task, { endpoint }: TaskQuestion): boolean {
  return endpoint === undefined || task.endpoint === endpoint;
}

export function notFound(taskId: string): Error {
  return problem("TASK_NOT_FOUND", `task ${taskId.slice(0, 64)} does not exist or has expired`);
}

export function notFinished({ taskId, status }: Task): Error {
  const message = `task ${taskId} is ${status}: ask again when it has finished, or with wait`;
  return problem("TASK_NOT_FINISHED", message, { metadata: { task_id: taskId, status } });
}

function finished({ taskId, status }: Task): Error {
  const message = `task ${taskId} has already ended (${status}) and cannot be cancelled`;
  return problem("TASK_FINISHED", message, { metadata: { task_id: taskId, status } });
}
