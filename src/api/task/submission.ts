/**
 * The parameters of a submit other than its arguments, as SubmitTask and
 * SubmitTasks check them: schedule, priority and idempotency key.
 */
import { createHash } from "node:crypto";
import { type Duration, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { Replay } from "../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../errors.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { SubmissionOptions } from "../../queue/submission.ts";
import { SCHEDULE_KEY_PREFIX } from "../../tasks/task.ts";

/** Highest priority of a task; the lowest is its negative. */
export const MAX_PRIORITY = 100;
const DAY_MS = 86_400_000;
/** How far ahead a task may be scheduled. */
export const MAX_DELAY_DAYS = 30;
/** How far ahead the deadline for a task's start may be. */
export const MAX_START_BY_DAYS = 365;
/** The shortest time for which a task can be kept after its end. */
export const MIN_RETENTION_MS = 1_000;

export interface ScheduleFields {
  readonly priority?: number;
  readonly runAt?: Timestamp;
  readonly startBy?: Timestamp;
  readonly delay?: Duration;
  readonly startWithin?: Duration;
  readonly retention?: Duration;
}

/** The schedule of nearly every request. */
const AT_ONCE = Object.freeze({});

/** The schedule of a request. Throws REQUEST_INVALID for an impossible one. */
export function scheduleOf(
  fields: ScheduleFields,
  { nowMs, maxRetentionMs }: { readonly nowMs: number; readonly maxRetentionMs: number },
): Pick<SubmissionOptions, "priority" | "runAtMs" | "startByMs" | "retentionMs"> {
  const { priority, runAt, delay, startBy, startWithin, retention } = fields;
  if ((priority ?? runAt ?? delay ?? startBy ?? startWithin ?? retention) === undefined) {
    return AT_ONCE;
  }
  if (priority !== undefined && Math.abs(priority) > MAX_PRIORITY) {
    throw invalid("priority", `must be from -${MAX_PRIORITY} to ${MAX_PRIORITY}`);
  }
  const runAtMs = timeOf(nowMs, [runAt, "run_at"], [delay, "delay"]);
  // Errors name the field that the caller gave.
  const runAtName = delay === undefined ? "run_at" : "delay";
  if (runAtMs !== undefined && runAtMs > nowMs + MAX_DELAY_DAYS * DAY_MS) {
    throw invalid(runAtName, `must be at most ${MAX_DELAY_DAYS} days ahead`);
  }
  const startByMs = timeOf(nowMs, [startBy, "start_by"], [startWithin, "start_within"]);
  if (startByMs !== undefined) {
    const name = startWithin === undefined ? "start_by" : "start_within";
    if (startByMs <= nowMs) {
      throw invalid(
        name,
        startWithin === undefined
          ? "has passed: give a time in the future, or none"
          : "must be longer than 0: the task could never be started",
      );
    }
    if (startByMs > nowMs + MAX_START_BY_DAYS * DAY_MS) {
      throw invalid(name, `must be at most ${MAX_START_BY_DAYS} days ahead`);
    }
    if (runAtMs !== undefined && startByMs <= runAtMs) {
      throw invalid(name, `must be after ${runAtName}: the task could never be started`);
    }
  }
  const retentionMs = retention && retentionOf(retention, maxRetentionMs);
  return { priority, runAtMs, startByMs, retentionMs };
}

/** Tags of a task. */
export const MAX_TAGS = 10;
/** The longest tag. */
export const MAX_TAG_CHARACTERS = 64;

/** The tags of a request; undefined for none. Throws REQUEST_INVALID for those that cannot be some. */
export function tagsOf(tags: readonly string[]): readonly string[] | undefined {
  if (tags.length === 0) {
    return undefined;
  }
  if (tags.length > MAX_TAGS) {
    throw invalid("tags", `must be at most ${MAX_TAGS}: there are ${tags.length}`);
  }
  for (const [at, tag] of tags.entries()) {
    const field = `tags[${at}]`;
    if (tag === "" || [...tag].length > MAX_TAG_CHARACTERS) {
      throw invalid(field, `must have from 1 to ${MAX_TAG_CHARACTERS} characters`);
    }
    if (tag.trim() !== tag || /[,\p{Cc}\p{Cs}]/u.test(tag)) {
      throw invalid(
        field,
        "must have no commas and no control characters, and no space at its beginning or its end",
      );
    }
    if (tags.indexOf(tag) < at) {
      throw invalid(field, `is ${JSON.stringify(tag)} again: give each tag once`);
    }
  }
  return tags;
}

function retentionOf(retention: Duration, maxRetentionMs: number): number {
  const retentionMs = durationMs(retention);
  if (retentionMs < MIN_RETENTION_MS || retentionMs > maxRetentionMs) {
    const seconds = maxRetentionMs / 1_000;
    throw invalid("retention", `must be from 1 to ${seconds} seconds, which the operator allows`);
  }
  return retentionMs;
}

/**
 * The part of a schedule that distinguishes calls with the same arguments. It
 * is the schedule as its caller wrote it, because the same delay sent twice
 * means two different times. Empty if the caller gave no schedule.
 */
export function scheduleText(fields: ScheduleFields): string {
  const { priority, runAt, startBy, delay, startWithin, retention } = fields;
  const times = [runAt, startBy, delay, startWithin, ...(retention ? [retention] : [])];
  if (priority === undefined && times.every((time) => time === undefined)) {
    return "";
  }
  const written = times.map((time) => time && [String(time.seconds), time.nanos]);
  return JSON.stringify([priority, ...written]);
}

/** A time that is given as such or as a duration from now, each with the name of its field. */
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

// Idempotency keys, and the digests that distinguish a repetition from another call.

/** Longest idempotency key. */
const MAX_IDEMPOTENCY_KEY_CHARACTERS = 255;

/** Throws REQUEST_INVALID for a key that cannot be one, before any work is done for its call. */
export function checkKey({ idempotencyKey: key, replay }: KeyFields): void {
  if (key.length > MAX_IDEMPOTENCY_KEY_CHARACTERS) {
    throw invalidKey(`must have at most ${MAX_IDEMPOTENCY_KEY_CHARACTERS} characters`);
  }
  if (replay !== undefined && Replay[replay] === undefined) {
    throw invalid("replay", "must be one of the values of Replay");
  }
}

/** Throws REQUEST_INVALID for a key on an api: its calls are not stored, so the key would promise too much. */
export function refuseKey(key: string, endpoint: string): void {
  if (key !== "") {
    throw invalidKey(
      `is not for ${endpoint}, which is an api: its calls are not stored, so a repetition would run again; leave the key out, or make it a task`,
    );
  }
}

/**
 * The digest of a call's arguments, files included, and its schedule.
 * @param schedule as `scheduleText` writes it
 */
export function digestOfCall({ json, files }: Payload, schedule: string): string {
  const hash = createHash("sha256").update(json).update(schedule);
  for (const { contentType, filename, ...file } of files) {
    // A file in the blob store has a digest already.
    const bytes = "blob" in file ? file.blob.sha256 : file.data;
    const size = "blob" in file ? file.blob.size : file.data.byteLength;
    hash.update(JSON.stringify([contentType, filename, size])).update(bytes);
  }
  return hash.digest("base64url");
}

interface KeyFields {
  readonly idempotencyKey: string;
  readonly replay?: Replay;
}

/** The key of a request with the digest of its call; undefined without a key. */
export function idempotencyOf(
  { idempotencyKey: key, replay }: KeyFields,
  digest: () => string,
): SubmissionOptions["idempotency"] {
  if (key === "") {
    return undefined;
  }
  if (key.startsWith(SCHEDULE_KEY_PREFIX)) {
    throw invalidKey(`must not begin with ${SCHEDULE_KEY_PREFIX}, as the keys of schedules do`);
  }
  return { key, digest: digest(), ...(replay === Replay.ALWAYS && { replay: "always" }) };
}

/** The digest of a retry: its task, whose arguments never change. It never equals the digest of a call. */
export function digestOfRetry(taskId: string): string {
  return `retry of ${taskId}`;
}

const REPLAYED = "idempotent-replayed";

/** Sets the header that marks the answer, or the error, as one about an earlier task. */
export function noteReplay({ responseHeader }: Pick<HandlerContext, "responseHeader">): void {
  responseHeader.set(REPLAYED, "true");
}

function invalidKey(description: string): Error {
  return problem("REQUEST_INVALID", `the idempotency key ${description}`, {
    violations: [{ field: "idempotency_key", description }],
  });
}
