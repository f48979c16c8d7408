/** Maps the end of an execution to the end of its attempt: success, failure, retry or requeue. */

import type { ExecutionEnd } from "../pool/calls/execution.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { CallFailure } from "../protocol/messages.ts";
import type { AttemptEnd } from "../storage/storage.ts";
import { cutOff, interrupted, workerLost } from "../tasks/failure.ts";
import { retryAt } from "../tasks/retry.ts";
import type { Task, TaskFailure } from "../tasks/task.ts";

/**
 * Pause before a task runs again whose files could not be moved, because the blob store is
 * away or full.
 */
const BLOB_STORE_RETRY_PAUSE_MS = 5_000;

interface OutcomeOptions {
  /** The task as it was claimed. */
  readonly task: Task;
  readonly endpoint: EndpointManifest;
  readonly nowMs: number;
  /** From 0 to 1: spreads the next attempts of tasks that failed together. */
  readonly random: number;
}

/** What to record of an attempt whose execution ended like this. */
export function outcomeOf(end: ExecutionEnd, options: OutcomeOptions): AttemptEnd {
  switch (end.kind) {
    case "result":
      return { status: "success", result: end.result };
    case "failure":
      return fail(toTaskFailure(end.failure), options);
    case "lost":
      return end.alone
        ? { status: "worker_lost", failure: workerLost(end) }
        : { ...returned(besideOthers(end.message)), suspect: true };
    case "cut_off":
      return { status: "node_lost", failure: cutOff(end.message) };
    case "displaced":
      return returned(`its worker was ended for another reason: ${end.message}`);
    case "unavailable":
      return {
        ...returned(end.problem.rawMessage),
        runAtMs: options.nowMs + BLOB_STORE_RETRY_PAUSE_MS,
      };
    case "aborted":
      if (end.reason === "timeout") {
        const failed = fail(timedOut(options.endpoint), options);
        // It has ended its worker, if not by itself.
        return end.killed && failed.status === "queued" ? { ...failed, suspect: true } : failed;
      }
      return end.reason === "cancelled"
        ? { status: "cancelled" }
        : returned("the node or its worker was stopped");
  }
}

type Failed = Extract<AttemptEnd, { readonly status: "queued" | "failure" }>;

function fail(failure: TaskFailure, options: OutcomeOptions): Failed {
  const { task, endpoint, nowMs, random } = options;
  const failures = task.failedAttempts + 1;
  const { code } = failure;
  const runAtMs = retryAt({ failures, code, policy: endpoint.retries, nowMs, random });
  return runAtMs === undefined
    ? { status: "failure", failure }
    : { status: "queued", runAtMs, failed: true, failure };
}

/** Back to the queue, at once: what ended the attempt was not the task's fault. */
function returned(why: string): Extract<AttemptEnd, { readonly status: "queued" }> {
  return { status: "queued", failed: false, failure: interrupted(why) };
}

function besideOthers(message: string): string {
  return `its worker died with other calls in it: ${message}; it is not counted, and runs again alone`;
}

function timedOut({ name, timeoutMs }: EndpointManifest): TaskFailure {
  const message = `endpoint ${name} did not end within its timeout of ${timeoutMs} ms`;
  return { reason: "timeout", code: "deadline_exceeded", message };
}

function toTaskFailure({ code, message, status, violations }: CallFailure): TaskFailure {
  return {
    reason: "error",
    code,
    message,
    ...(status !== undefined && { status }),
    ...(violations && {
      violations: violations.map(({ path, message }) => ({ field: path, description: message })),
    }),
  };
}
