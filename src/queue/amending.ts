/**
 * What callers amend of tasks that were submitted: they retry one that has ended, delete tasks before
 * their time, and change when a task starts that waits. The storage has the last word; of a task that is deleted, this node forgets
 * what it remembers, and tells other nodes to. A caller that waits for one learns that it is gone.
 */
import { problem } from "../errors.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { Payload } from "../protocol/messages.ts";
import type { DeleteOutcome, Storage, TaskChange } from "../storage/storage.ts";
import { isFinal, type Task } from "../tasks/task.ts";
import type { Expirer } from "./maintenance/expirer.ts";
import type { SubmissionOptions, Submitted } from "./submission.ts";
import { notFinished, notFound, type TaskQuestion, type Tasks, tooLate } from "./tasks.ts";
import type { Changes } from "./waits/changes.ts";

interface AmendingOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "deleteTasks" | "updateTask" | "cells">;
  readonly maintenance: { readonly expirer: Pick<Expirer, "expect"> };
  readonly now: () => number;
  readonly tasks: Tasks;
  readonly changes: Changes;
  readonly queue: {
    submit(
      endpoint: EndpointManifest,
      payload: Payload,
      options: SubmissionOptions,
    ): Promise<Submitted>;
    cancel(question: TaskQuestion, abort: boolean): Promise<unknown>;
    /** A task waits, and may have to be claimed at another time than before. */
    requeued(task: Task): void;
  };
}

export class Amending {
  readonly #options: AmendingOptions;

  constructor(options: AmendingOptions) {
    this.#options = options;
  }

  /**
   * Submits a new task with the arguments of a finished one. A repeated
   * idempotency key returns the task of the first time. Rejects with
   * TASK_NOT_FOUND, TASK_NOT_FINISHED, or as `Queue.submit` does.
   */
  async retry(
    question: TaskQuestion & Pick<SubmissionOptions, "idempotency" | "refusal" | "origin">,
    endpointOf: (name: string) => EndpointManifest,
  ): Promise<Submitted> {
    const { task, payload } = await this.#options.tasks.arguments(question);
    if (!isFinal(task.status)) {
      throw notFinished(task);
    }
    const { idempotency, refusal, origin } = question;
    const { taskId, priority, key, tags, trace: retriedTrace } = task;
    const options = { retryOf: taskId, priority, key, tags, idempotency, refusal, origin };
    return this.#options.queue.submit(endpointOf(task.endpoint), payload, {
      ...options,
      retriedTrace,
    });
  }

  /**
   * Deletes a task; with `abort`, also one that runs, once it has ended. Rejects with TASK_NOT_FOUND
   * or TASK_ALREADY_STARTED.
   */
  async delete(question: TaskQuestion, abort: boolean): Promise<void> {
    const { tasks } = this.#options;
    const { taskId, status } = await tasks.find(question);
    const remove = async () => (await this.deleteAll([taskId]))[0];
    let outcome = abort && status === "running" ? status : await remove();
    // It ran, or was started before it could be deleted.
    if (abort && outcome === "running") {
      await this.#stop(question);
      outcome = await remove();
    }
    if (outcome === "not_found") {
      // Somebody else has deleted it meanwhile, and the error says so.
      await tasks.find(question);
      throw notFound(taskId, this.#options.storage);
    }
    if (outcome === "running") {
      const message = `task ${taskId} is running: cancel it first, or add abort=true to stop it`;
      throw problem("TASK_ALREADY_STARTED", message, { metadata: { task_id: taskId } });
    }
  }

  /**
   * Changes when a task starts that waits, and how long it is kept. Rejects with TASK_NOT_FOUND,
   * TASK_ALREADY_STARTED or TASK_FINISHED.
   */
  async update({ taskId }: TaskQuestion, change: TaskChange): Promise<Task> {
    const { deploymentId, storage, maintenance, now, changes, queue } = this.#options;
    const updated = await storage.updateTask({ deploymentId, taskId, change, nowMs: now() });
    if (updated === undefined) {
      throw notFound(taskId, this.#options.storage);
    }
    const { task } = updated;
    if (updated.outcome === "not_queued") {
      throw tooLate(task, "changed", "is running: only one that waits can be changed");
    }
    if (task.startByMs !== undefined) {
      maintenance.expirer.expect(task.startByMs);
    }
    queue.requeued(task);
    changes.publish(taskId, task);
    return task;
  }

  /** Deletes those of the tasks that do not run; answers in their order. */
  async deleteAll(taskIds: readonly string[]): Promise<DeleteOutcome[]> {
    const { deploymentId, storage, now, tasks, changes } = this.#options;
    const tell = (taskId: string): void => {
      tasks.forget(taskId);
      changes.publish(taskId);
    };
    const asked = { deploymentId, taskIds, nowMs: now() };
    const outcomes = await storage.deleteTasks(asked).catch((err: unknown) => {
      // They may be deleted all the same, and nobody is to be answered from memory.
      taskIds.forEach(tell);
      throw err;
    });
    taskIds.filter((_, at) => outcomes[at] !== "running").forEach(tell);
    return outcomes;
  }

  /** Ends a task that runs, unless it has ended by itself. */
  async #stop(question: TaskQuestion): Promise<void> {
    try {
      await this.#options.queue.cancel(question, true);
    } catch (err) {
      const { status } = await this.#options.tasks.find(question);
      if (status === "running") {
        throw err;
      }
    }
  }
}
