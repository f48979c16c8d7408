/** When a call may be started, and before which others: what SubmitTask and SubmitTasks check alike. */
import { type Duration, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { problem } from "../../../errors.ts";
import type { SubmissionOptions } from "../../../queue/submission.ts";

const MAX_PRIORITY = 100;
const DAY_MS = 86_400_000;
const MAX_DELAY_DAYS = 30;
const MAX_START_BY_DAYS = 365;

export interface ScheduleFields {
  readonly priority?: number;
  readonly runAt?: Timestamp;
  readonly startBy?: Timestamp;
  readonly delay?: Duration;
  readonly startWithin?: Duration;
}

/** What nearly every request asks for. */
const AT_ONCE = Object.freeze({});

/** The schedule that a request asks for; throws REQUEST_INVALID for one that cannot be kept. */
export function scheduleOf(
  fields: ScheduleFields,
  nowMs: number,
): Pick<SubmissionOptions, "priority" | "runAtMs" | "startByMs"> {
  const { priority, runAt, delay, startBy, startWithin } = fields;
  if ((priority ?? runAt ?? delay ?? startBy ?? startWithin) === undefined) {
    return AT_ONCE;
  }
  if (priority !== undefined && Math.abs(priority) > MAX_PRIORITY) {
    throw invalid("priority", `must be from -${MAX_PRIORITY} to ${MAX_PRIORITY}`);
  }
  const runAtMs = timeOf(nowMs, [runAt, "run_at"], [delay, "delay"]);
  if (runAtMs !== undefined && runAtMs > nowMs + MAX_DELAY_DAYS * DAY_MS) {
    throw invalid("run_at", `must be at most ${MAX_DELAY_DAYS} days ahead`);
  }
  const startByMs = timeOf(nowMs, [startBy, "start_by"], [startWithin, "start_within"]);
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
  return { priority, runAtMs, startByMs };
}

/**
 * What of a schedule tells one call from another that has the same arguments:
 * as its caller wrote it, because a delay said twice means two times. Empty
 * when the caller wrote nothing.
 */
export function scheduleText(fields: ScheduleFields): string {
  const { priority, runAt, startBy, delay, startWithin } = fields;
  const times = [runAt, startBy, delay, startWithin];
  if (priority === undefined && times.every((time) => time === undefined)) {
    return "";
  }
  const written = times.map((time) => time && [String(time.seconds), time.nanos]);
  return JSON.stringify([priority, ...written]);
}

/** A time that is given as such, or as so long from now; each with the name of its field. */
function timeOf(
  nowMs: number,
  [at, atName]: readonly [Timestamp | undefined, string],
  [after, afterName]: readonly [Duration | undefined, string],
): number | undefined {
  if (after === undefined) {
    return at && timestampMs(at);
  }
  if (at !== undefined) {
    throw invalid(afterName, `cannot be given together with ${atName}`);
  }
  const afterMs = durationMs(after);
  if (afterMs < 0) {
    throw invalid(afterName, "must not be negative");
  }
  return nowMs + afterMs;
}

function invalid(field: string, description: string): Error {
  return problem("REQUEST_INVALID", `${field} ${description}`, {
    violations: [{ field, description }],
  });
}
