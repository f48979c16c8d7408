/** Tasks, attempts and payloads as values one after the other; what writes and what reads go together. */
import type { Payload } from "../../protocol/messages.ts";
import type { Task } from "../../tasks/task.ts";
import type { Attempt, AttemptEnd, NewTask, TaskKey } from "../storage.ts";
import type { ValueReader } from "./values.ts";

export function packNewTask(out: unknown[], task: NewTask): void {
  out.push(
    task.deploymentId,
    task.taskId,
    task.endpoint,
    task.createdAtMs,
    task.runAtMs,
    task.startByMs,
    task.expiresAtMs,
    task.retentionMs,
    task.priority,
    task.retryOf,
    task.idempotency,
    task.queueLimit,
    task.leaseId,
    task.trace,
    toValue(task.arguments),
  );
}

export function unpackNewTask(values: ValueReader): NewTask {
  const task: { readonly [Name in keyof Required<NewTask>]: NewTask[Name] } = {
    deploymentId: values.next(),
    taskId: values.next(),
    endpoint: values.next(),
    createdAtMs: values.next(),
    runAtMs: values.next(),
    startByMs: values.next(),
    expiresAtMs: values.next(),
    retentionMs: values.next(),
    priority: values.next(),
    retryOf: values.next(),
    idempotency: values.next(),
    queueLimit: values.next(),
    leaseId: values.next(),
    trace: values.next(),
    arguments: toPayload(values.next<string | Payload>()),
  };
  return task;
}

export function packTask(out: unknown[], task: Task): void {
  out.push(task.deploymentId, task.taskId);
  packState(out, task);
}

export function unpackTask(values: ValueReader): Task {
  return unpackState(values, { deploymentId: values.next(), taskId: values.next() });
}

/** All of a task but its key. */
export function packState(out: unknown[], task: Task): void {
  out.push(
    task.endpoint,
    task.status,
    task.createdAtMs,
    task.startedAtMs,
    task.finishedAtMs,
    task.expiresAtMs,
    task.attempt,
    task.failedAttempts,
    task.progress,
    task.retryOf,
    task.failure,
    task.lastSequence,
    task.priority,
    task.runAtMs,
    task.startByMs,
    task.trace,
  );
}

/** @param key the texts with which it was asked for: who compares them with themselves does so at once. */
export function unpackState(values: ValueReader, { deploymentId, taskId }: TaskKey): Task {
  return {
    deploymentId,
    taskId,
    endpoint: values.next(),
    status: values.next(),
    createdAtMs: values.next(),
    startedAtMs: values.next(),
    finishedAtMs: values.next(),
    expiresAtMs: values.next(),
    attempt: values.next(),
    failedAttempts: values.next(),
    progress: values.next(),
    retryOf: values.next(),
    failure: values.next(),
    lastSequence: values.next(),
    priority: values.next(),
    runAtMs: values.next(),
    startByMs: values.next(),
    trace: values.next(),
  };
}

/** Nearly every payload is JSON text and no more, and crosses as that. */
export function toValue(payload: Payload): string | Payload {
  return payload.files.length === 0 && payload.text === undefined ? payload.json : payload;
}

export function toPayload(value: string | Payload): Payload {
  return typeof value === "string" ? { json: value, files: [] } : value;
}

/** An attempt and its end. A success is its result alone. */
export function packEnd(out: unknown[], attempt: Attempt, end: AttemptEnd): void {
  out.push(attempt.deploymentId, attempt.taskId, attempt.leaseId, attempt.attempt);
  out.push(end.status === "success" ? toValue(end.result) : end);
}

export function unpackEnd(values: ValueReader): { attempt: Attempt; end: AttemptEnd } {
  const attempt: Attempt = {
    deploymentId: values.next(),
    taskId: values.next(),
    leaseId: values.next(),
    attempt: values.next(),
  };
  const packed = values.next<string | Payload | AttemptEnd>();
  const end: AttemptEnd =
    typeof packed === "object" && "status" in packed
      ? packed
      : { status: "success", result: toPayload(packed) };
  return { attempt, end };
}
