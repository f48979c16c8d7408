/** The failures that the queue itself sets on attempts and tasks. */
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { CallFailure } from "../protocol/messages.ts";
import { MAX_LOST_NODES, MAX_LOST_WORKERS } from "./lost.ts";
import type { TaskFailure } from "./task.ts";

/** For a task that missed its start deadline. */
export const EXPIRED: TaskFailure = {
  reason: "expired",
  code: "deadline_exceeded",
  message: "the task was not started before its deadline",
};

/** For an attempt whose worker died, for a reason that nobody knows. */
export const WORKER_LOST = workerLost({ message: "the worker ended while this ran" });

/** For an attempt whose function failed. */
export function functionFailed({ code, message, status, violations }: CallFailure): TaskFailure {
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

/** For an attempt that took longer than its endpoint may. */
export function timedOut({
  name,
  timeoutMs,
}: Pick<EndpointManifest, "name" | "timeoutMs">): TaskFailure {
  const message = `endpoint ${name} did not end within its timeout of ${timeoutMs} ms`;
  return { reason: "timeout", code: "deadline_exceeded", message };
}

/** For an attempt whose lease ended before it did. */
export const NODE_LOST: TaskFailure = {
  reason: "node_lost",
  code: "unavailable",
  message: "the node that ran it ended, or lost the database",
};

/** For an attempt whose worker, on another machine, is cut off. */
export function cutOff(message: string): TaskFailure {
  const told = `its worker was cut off: ${message}`;
  return { reason: "node_lost", code: "unavailable", message: told };
}

/** For a task that lost more nodes than `MAX_LOST_NODES`. */
export const NODES_LOST: TaskFailure = {
  reason: "node_lost",
  code: "internal",
  message: `the node ended during this task ${MAX_LOST_NODES + 1} times; it is not tried again`,
};

/** For an attempt that the platform returned to the queue; that is never the task's fault. */
export function interrupted(message: string): TaskFailure {
  return { reason: "interrupted", code: "unavailable", message };
}

/** For an attempt that ran when the database was backed up from which this one was restored. */
export const RESTORED = interrupted("the platform was restored from a backup");

/** For an attempt whose result cannot be stored any more. */
export const RESULT_GONE = interrupted("files of its result were deleted before it was stored");

/** For an attempt whose worker died, with why. */
export function workerLost({
  message,
  outOfMemory = false,
}: {
  readonly message: string;
  readonly outOfMemory?: boolean;
}): TaskFailure {
  const reason = outOfMemory ? "out_of_memory" : "worker_lost";
  return { reason, code: "internal", message };
}

/** Why an attempt was interrupted whose worker died while it ran beside other calls. */
export function lostBesideOthers(message: string): string {
  return `its worker died with other calls in it: ${message}; it is not counted, and runs again alone`;
}

/** For a task that lost more workers than `MAX_LOST_WORKERS`; `last` is what ended the last one. */
export function workersLost(last: TaskFailure): TaskFailure {
  const times = `the worker died during this task ${MAX_LOST_WORKERS + 1} times; it is not tried again`;
  const message =
    last.message === WORKER_LOST.message ? times : `${times}; the last time: ${last.message}`;
  return { reason: last.reason, code: last.code, message };
}
