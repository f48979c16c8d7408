/** When a call may be started, and before which others: what SubmitTask and SubmitTasks check alike. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { problem } from "../errors.ts";
import type { SubmitOptions } from "../queue/submission.ts";

const MAX_PRIORITY = 100;
const DAY_MS = 86_400_000;
const MAX_DELAY_DAYS = 30;
const MAX_START_BY_DAYS = 365;

export interface ScheduleFields {
  readonly priority?: number;
  readonly runAt?: Timestamp;
  readonly startBy?: Timestamp;
}

/** The schedule that a request asks for; throws REQUEST_INVALID for one that cannot be kept. */
export function scheduleOf(
  { priority, runAt, startBy }: ScheduleFields,
  nowMs: number,
): Pick<SubmitOptions, "priority" | "runAtMs" | "startByMs"> {
  if (priority !== undefined && Math.abs(priority) > MAX_PRIORITY) {
    throw invalid("priority", `must be from -${MAX_PRIORITY} to ${MAX_PRIORITY}`);
  }
  const runAtMs = runAt && timestampMs(runAt);
  if (runAtMs !== undefined && runAtMs > nowMs + MAX_DELAY_DAYS * DAY_MS) {
    throw invalid("run_at", `must be at most ${MAX_DELAY_DAYS} days ahead`);
  }
  const startByMs = startBy && timestampMs(startBy);
  if (startByMs !== undefined) {
    if (startByMs <= nowMs) {
      throw invalid("start_by", "has passed: give a time in the future, or none");
    }
    if (startByMs > nowMs + MAX_START_BY_DAYS * DAY_MS) {
      throw invalid("start_by", `must be at most ${MAX_START_BY_DAYS} days ahead`);
    }
    if (runAtMs !== undefined && startByMs <= runAtMs) {
      throw invalid("start_by", "must be after run_at: the task could never be started");
    }
  }
  return {
    ...(priority !== undefined && { priority }),
    ...(runAtMs !== undefined && { runAtMs }),
    ...(startByMs !== undefined && { startByMs }),
  };
}

function invalid(field: string, description: string): Error {
  return problem("REQUEST_INVALID", `${field} ${description}`, {
    violations: [{ field, description }],
  });
}
