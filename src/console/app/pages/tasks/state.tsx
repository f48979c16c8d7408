/** The state of a task in words. */
import type { TaskJson, TaskStatusJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { capitalized } from "../../api/errors.ts";
import { Status, type Tone } from "../../ui/status.tsx";

/** The states, in the order of a task's life. */
export const STATES = {
  TASK_STATUS_QUEUED: ["idle", "queued"],
  TASK_STATUS_RUNNING: ["working", "running"],
  TASK_STATUS_SUCCESS: ["done", "success"],
  TASK_STATUS_FAILURE: ["bad", "failure"],
  TASK_STATUS_CANCELLED: ["warning", "cancelled"],
} as const satisfies Partial<Record<TaskStatusJson, readonly [Tone, string]>>;

export type ShownState = keyof typeof STATES;

/** Why a task is queued, as a sentence; empty where its time to come says it, or nobody does. */
export function whyQueued({ queuedReason }: TaskJson): string {
  const { code, message = "" } = queuedReason ?? {};
  return code === "QUEUED_CODE_SCHEDULED" || code === "QUEUED_CODE_RETRYING" || message === ""
    ? ""
    : `${capitalized(message)}.`;
}

/** What a queued task is whose time to start is to come. */
export const SCHEDULED = "scheduled";

/** True for a task that is queued, with a time to come. */
export const isScheduled = ({ status, runAt }: TaskJson): boolean =>
  status === "TASK_STATUS_QUEUED" && runAt !== undefined && Date.parse(runAt) > Date.now();

/** The state of a task, where those that are scheduled have a word of their own. */
export function ListedStatus({ task }: { readonly task: TaskJson }) {
  return isScheduled(task) ? (
    <Status tone="idle">{SCHEDULED}</Status>
  ) : (
    <TaskStatus status={task.status} />
  );
}

export function TaskStatus({ status }: { readonly status: TaskStatusJson | undefined }) {
  const [tone, word] = STATES[status as ShownState] ?? ["idle", "unknown"];
  return <Status tone={tone}>{word}</Status>;
}
