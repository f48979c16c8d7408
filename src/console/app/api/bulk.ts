/** Cancels, retries and deletes many tasks: those that were selected, or all that a filter chooses. */
import type { BulkTasksResponseJson } from "../../../../gen/tessera/v1/organization_task_pb.js";
import type { TaskJson } from "../../../../gen/tessera/v1/task_pb.js";
import { organizationTasks, tasks } from "./clients.ts";
import { messageOf } from "./errors.ts";
import { hasEnded, requestOf, type TaskFilter } from "./tasks.ts";

export type BulkVerb = "cancel" | "retry" | "delete";

/** What became of many tasks. */
export interface BulkOutcome {
  readonly changed: number;
  readonly skipped: number;
  /** Why one of them was skipped. */
  readonly why: string | undefined;
}

/** Calls under way for tasks that were selected. */
const MAX_CALLS_AT_ONCE = 6;

/** True where the verb can change such a task. */
export const admits = (verb: BulkVerb, task: TaskJson): boolean =>
  verb === "delete" ? task.status !== "TASK_STATUS_RUNNING" : hasEnded(task) === (verb === "retry");

/** True where the verb can change tasks that the filter chooses: an error is one of failed tasks. */
export const admitsFilter = (verb: BulkVerb, { status, error }: TaskFilter): boolean =>
  status === undefined
    ? error === undefined || verb !== "cancel"
    : admits(verb, { status } as TaskJson);

interface ChosenTasks {
  readonly organization: string;
  readonly filter: TaskFilter;
  /** Also tasks that run. */
  readonly abort: boolean;
}

/** How many tasks the filter chooses. */
export async function count(verb: BulkVerb, chosen: ChosenTasks): Promise<number> {
  return (await changeChosen(verb, chosen, { dryRun: true })).changed;
}

/** Changes all tasks that the filter chooses, call by call. */
export async function changeChosen(
  verb: BulkVerb,
  { organization, filter, abort }: ChosenTasks,
  { dryRun = false } = {},
): Promise<BulkOutcome> {
  const { organization: _own, ...parts } = requestOf(organization, filter);
  const idempotencyKey = crypto.randomUUID();
  let [changed, skipped] = [0, 0];
  let why: string | undefined;
  let pageToken = "";
  do {
    const asked = { organization, filter: { ...parts, all: true }, dryRun, pageToken };
    const answer: BulkTasksResponseJson =
      verb === "cancel"
        ? await organizationTasks.cancelTasks({ ...asked, abort })
        : verb === "retry"
          ? await organizationTasks.retryTasks({ ...asked, idempotencyKey })
          : await organizationTasks.deleteTasks(asked);
    changed += answer.changed ?? 0;
    for (const one of answer.skipped ?? []) {
      skipped += one.count ?? 0;
      why ??= one.message;
    }
    pageToken = answer.nextPageToken ?? "";
  } while (pageToken !== "");
  return { changed, skipped, why };
}

/** Changes tasks one by one. */
export async function changeSelected(
  verb: BulkVerb,
  selected: readonly TaskJson[],
): Promise<BulkOutcome> {
  let [changed, skipped] = [0, 0];
  let why: string | undefined;
  const left = [...selected];
  const work = async (): Promise<void> => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) {
      const { deployment = "", taskId = "" } = task;
      try {
        await changeOne(verb, deployment, taskId);
        changed += 1;
      } catch (err) {
        skipped += 1;
        why ??= messageOf(err);
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_CALLS_AT_ONCE }, work));
  return { changed, skipped, why };
}

function changeOne(verb: BulkVerb, deployment: string, taskId: string): Promise<unknown> {
  switch (verb) {
    case "cancel":
      return tasks.cancelTask({ deployment, taskId, abort: true });
    case "retry":
      return tasks.retryTask({ deployment, taskId, idempotencyKey: `retry-${taskId}` });
    case "delete":
      return tasks.deleteTask({ deployment, taskId });
  }
}
