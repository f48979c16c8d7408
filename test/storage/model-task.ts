/** One task of the reference model, and what can happen to it. */
import type { Payload } from "../../src/protocol/messages.ts";
import type { AttemptEnd, NewTask } from "../../src/storage/storage.ts";
import type { LineRange, TaskEvent, TaskEventBody } from "../../src/tasks/event.ts";
import type { Task, TaskFailure } from "../../src/tasks/task.ts";

/** A task with all that the model knows about it. */
export interface ModelTask {
  task: Task;
  submitted: NewTask;
  /** It was found due once, and stays so when the clock goes back. */
  due: boolean;
  leaseId: string | undefined;
  lostWorkers: number;
  lostNodes: number;
  suspect: boolean;
  /** Undefined where none was given and no claim has asked for it. */
  key: string | undefined;
  abortRequested: boolean;
  result: Payload | undefined;
  /** What ended it: the same again is a repetition of that call. */
  ended: { readonly leaseId: string; readonly end: AttemptEnd; readonly nowMs: number } | undefined;
  readonly log: TaskEvent[];
}

/** A task as it is accepted. */
export function create(submitted: NewTask): ModelTask {
  const { deploymentId, taskId, endpoint, priority, createdAtMs, runAtMs, startByMs } = submitted;
  const { expiresAtMs, retryOf, key, trace, tags } = submitted;
  const found: ModelTask = {
    task: {
      deploymentId,
      taskId,
      endpoint,
      status: "queued",
      priority,
      expiresAtMs,
      retryOf,
      key: key || undefined,
      schedule: undefined,
      tags,
      trace,
      createdAtMs,
      runAtMs,
      startByMs,
      startedAtMs: undefined,
      finishedAtMs: undefined,
      progress: undefined,
      failure: undefined,
      attempt: 0,
      failedAttempts: 0,
      worker: undefined,
      returned: [],
      lastSequence: 0,
    },
    submitted,
    due: runAtMs <= createdAtMs,
    leaseId: undefined,
    lostWorkers: 0,
    lostNodes: 0,
    suspect: false,
    key,
    abortRequested: false,
    result: undefined,
    ended: undefined,
    log: [],
  };
  append(found, createdAtMs, { kind: "state", status: "queued" });
  return found;
}

/** Back to the queue, for that time, or else to the place that it had. */
export function requeue(
  found: ModelTask,
  {
    laterMs,
    failure,
    nowMs,
  }: { laterMs?: number | undefined; failure: TaskFailure; nowMs: number },
): Task {
  const { task } = found;
  const runAtMs = laterMs ?? task.runAtMs;
  const { reason, code, message } = failure;
  const retry = laterMs !== undefined && laterMs > nowMs ? { retryAtMs: laterMs } : {};
  const one = {
    number: task.attempt,
    worker: found.leaseId ?? "",
    startedAtMs: task.startedAtMs ?? 0,
    endedAtMs: nowMs,
    failure: { reason, code, message },
    ...retry,
  };
  // The first five and the last fifteen.
  const returned = [...task.returned, one].filter((_, at, all) => at < 5 || at >= all.length - 15);
  found.task = { ...task, status: "queued", runAtMs, returned, worker: undefined };
  found.due = laterMs === undefined || laterMs <= nowMs;
  found.leaseId = undefined;
  append(found, nowMs, { kind: "state", status: "queued", failure, ...retry });
  return found.task;
}

export function finish(
  found: ModelTask,
  end: Extract<AttemptEnd, { status: "success" | "failure" | "cancelled" }>,
  nowMs: number,
): Task {
  const { task, submitted } = found;
  const { status } = end;
  const failure = end.status === "failure" ? end.failure : undefined;
  const kept = nowMs + submitted.retentionMs;
  // What ran keeps at least what was promised when it was submitted.
  const expiresAtMs = found.leaseId === undefined ? kept : Math.max(task.expiresAtMs, kept);
  found.ended = found.leaseId === undefined ? undefined : { leaseId: found.leaseId, end, nowMs };
  found.task = { ...task, status, failure, finishedAtMs: nowMs, expiresAtMs };
  found.leaseId = undefined;
  found.result = end.status === "success" ? end.result : undefined;
  append(found, nowMs, { kind: "state", status, ...(failure && { failure }) });
  return found.task;
}

/** Writes an event into the log of a task; answers its number. */
export function append(found: ModelTask, timeMs: number, body: TaskEventBody): number {
  const sequence = found.task.lastSequence + 1;
  found.task = { ...found.task, lastSequence: sequence };
  found.log.push({ sequence, timeMs, attempt: found.task.attempt, body });
  return sequence;
}

/** Removes lines from the log of the running attempt. */
export function removeLines(found: ModelTask, { first, last }: LineRange): void {
  const kept = found.log.filter(({ attempt, body }) => {
    const line = body.kind === "log" ? (body.line ?? 0) : 0;
    return attempt !== found.task.attempt || line < first || line > last;
  });
  found.log.splice(0, found.log.length, ...kept);
}

/** The order of claims. */
export function inOrder(a: ModelTask, b: ModelTask): number {
  return (
    b.task.priority - a.task.priority ||
    a.task.runAtMs - b.task.runAtMs ||
    (a.task.taskId < b.task.taskId ? -1 : 1)
  );
}

export function canStart({ submitted: { startByMs } }: ModelTask, nowMs: number): boolean {
  return startByMs === undefined || startByMs > nowMs;
}

/** Also one that was found due by a clock that is ahead of this one. */
export function isClaimable(found: ModelTask, nowMs: number): boolean {
  return (found.due || found.task.runAtMs <= nowMs) && canStart(found, nowMs);
}

/** The key of a task, among those of all endpoints. */
export function nameOf({ task: { deploymentId, endpoint }, key = "" }: ModelTask): string {
  return JSON.stringify([deploymentId, endpoint, key]);
}

/** The endpoint of a task, among those of all deployments. */
export function queueOf({ deploymentId, endpoint }: Pick<Task, "deploymentId" | "endpoint">) {
  return `${deploymentId}/${endpoint}`;
}
