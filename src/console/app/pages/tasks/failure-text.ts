/** Why a task or an attempt failed, in words. */
import type { FailureReasonJson, TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";

const REASONS: Partial<Record<FailureReasonJson, string>> = {
  FAILURE_REASON_ERROR: "the function failed",
  FAILURE_REASON_TIMEOUT: "ran out of time",
  FAILURE_REASON_EXPIRED: "not started in time",
  FAILURE_REASON_WORKER_LOST: "its worker died",
  FAILURE_REASON_OUT_OF_MEMORY: "out of memory",
  FAILURE_REASON_NODE_LOST: "its node was lost",
  FAILURE_REASON_INTERRUPTED: "interrupted by the platform",
};

export const reasonOf = (reason: FailureReasonJson | undefined): string =>
  REASONS[reason ?? "FAILURE_REASON_UNSPECIFIED"] ?? "failed";

/** The message of a failure; for one without a message, what kind it is. */
export const failureText = ({ message, reason }: NonNullable<TaskJson["failure"]>): string =>
  message || reasonOf(reason);
