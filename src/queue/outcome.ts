/** What the end of an execution means for the task that it was an attempt of. */
import type { EndpointManifest } from "../sdk/manifest.ts";
import type { CallFailure, Payload } from "../sdk/protocol.ts";
import type { AttemptEnd } from "../storage/storage.ts";
import { retryAt } from "../tasks/retry.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";
import type { ExecutionEnd } from "./pool/execution.ts";

export interface OutcomeOptions {
  /** The task as it was claimed. */
  readonly task: Task;
  readonly endpoint: EndpointManifest;
  readonly nowMs: number;
  readonly maxResultBytes: number;
}

export function outcomeOf(end: ExecutionEnd, options: OutcomeOptions): AttemptEnd {
  switch (end.kind) {
    case "result":
      return withinLimit(end.result, options.maxResultBytes);
    case "failure":
      return fail(toTaskFailure(end.failure), options);
    case "lost":
      return { status: "worker_lost" };
    case "aborted":
      if (end.reason === "timeout") {
        return fail(timedOut(options.endpoint), options);
      }
      return end.reason === "cancelled"
        ? { status: "cancelled" }
        : { status: "queued", runAtMs: options.nowMs, failed: false };
  }
}

/** The size of a payload: its JSON text, counted in characters, and its files. */
export function payloadBytes(payload: Payload): number {
  return payload.files.reduce((sum, { data }) => sum + data.byteLength, payload.json.length);
}

function withinLimit(result: Payload, maxResultBytes: number): AttemptEnd {
  const bytes = payloadBytes(result);
  if (bytes <= maxResultBytes) {
    return { status: "success", result };
  }
  const message = `the result has ${bytes} bytes, the limit is ${maxResultBytes}: return less, or a link to it`;
  return { status: "failure", failure: { reason: "error", code: "internal", message } };
}

function fail(failure: TaskFailure, { task, endpoint, nowMs }: OutcomeOptions): AttemptEnd {
  const failures = task.failedAttempts + 1;
  const { code } = failure;
  const runAtMs = retryAt({ failures, code, policy: endpoint.retries, nowMs });
  return runAtMs === undefined
    ? { status: "failure", failure }
    : { status: "queued", runAtMs, failed: true };
}

function timedOut({ name, timeoutMs }: EndpointManifest): TaskFailure {
  const message = `endpoint ${name} did not end within its timeout of ${timeoutMs} ms`;
  return { reason: "timeout", code: "deadline_exceeded", message };
}

function toTaskFailure({ code, message, violations }: CallFailure): TaskFailure {
  return {
    reason: "error",
    code,
    message,
    ...(violations && {
      violations: violations.map(({ path, message }) => ({ field: path, description: message })),
    }),
  };
}
