/** SubmitTask, and SubmitTasks, which submits up to 1,000 tasks in one commit: what they take, checked. */
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { type Duration, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  Replay,
  SubmitTaskResponseSchema,
  SubmitTasksResponseSchema,
  type SubmittedTask,
  SubmittedTaskSchema,
  type TaskService,
} from "../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../deployments/deployment.ts";
import { Problem, problem, toProblem } from "../../errors.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { Submission, SubmissionOptions, Submitted } from "../../queue/submission.ts";
import { type StreamedBodies, streamedBodies } from "../../server/http/streamed-bodies.ts";
import { keyOf, noteTask, originOf } from "../../server/rpc/engine/caller.ts";
import { deploymentOf } from "../../server/rpc/interceptors/access.ts";
import type { CallInput } from "../../service/input/arguments.ts";
import { isFinal, SCHEDULE_KEY_PREFIX } from "../../tasks/task.ts";
import { durationFromMs } from "../../time/messages.ts";
import type { Origin } from "../../tracing/context.ts";
import {
  inputOf,
  milliseconds,
  releasingUnless,
  shownRequest,
  toTaskMessage,
  withRequest,
} from "./messages.ts";
import { answer } from "./result.ts";

/** Calls of one submit that are read before other requests get their turn. */
const MAX_CALLS_PER_TURN = 50;

/** The handlers of submits. */
export const submitHandlers: Pick<ServiceImpl<typeof TaskService>, "submitTask" | "submitTasks"> = {
  async submitTask(req, ctx) {
    const deployment = deploymentOf(ctx);
    const origin = originOf(ctx);
    const refusal = deployment.admit("task", origin.tokenId, req.idempotencyKey);
    const { queue, tasks, name } = deployment;
    const bodies = ctx.values.get(streamedBodies);
    const reading = read(deployment, req, { ctx, origin, bodies, refusal });
    const { endpoint, payload, options } = reading instanceof Promise ? await reading : reading;
    const submitting = queue.submit(endpoint, payload, options);
    const { task, replayed } = await releasingUnless(submitting, payload, deployment.files.task);
    noteTask(ctx, task);
    if (replayed) {
      noteReplay(ctx);
    }
    const response = create(SubmitTaskResponseSchema);
    response.replayed = replayed;
    const waitMs = milliseconds(req.wait);
    if (waitMs === 0) {
      const place = task.status === "queued" ? await tasks.place(task) : undefined;
      response.task = toTaskMessage(task, name, place);
      return response;
    }
    const { taskId } = task;
    // The task is accepted even if the wait fails: an error would be taken for a refusal.
    const ended = await tasks
      .result({ taskId, waitMs, signal: ctx.signal })
      .catch(() => ({ task, result: undefined }));
    response.task = toTaskMessage(ended.task, name, await tasks.place(ended.task));
    if (isFinal(ended.task.status)) {
      response.result = await answer(ended, deployment, { format: req.resultFormat, bodies });
    }
    return response;
  },

  async submitTasks(req, ctx) {
    const deployment = deploymentOf(ctx);
    const origin = originOf(ctx);
    const keyed = req.tasks.find(({ idempotencyKey }) => idempotencyKey !== "");
    const refusal = deployment.admit("task", origin.tokenId, keyed?.idempotencyKey);
    const read = await readAll(deployment, req.tasks, { ctx, origin, refusal });
    const valid = read.filter((one): one is Submission => !(one instanceof Problem));
    const outcomes = (await deployment.queue.submitAll(valid)).values();
    const results = read.map((one) =>
      toResult(one instanceof Problem ? one : outcomes.next().value, deployment.name),
    );
    const response = create(SubmitTasksResponseSchema);
    response.results = results;
    response.accepted = results.filter(({ outcome }) => outcome.case === "task").length;
    response.refused = results.length - response.accepted;
    return response;
  },
};

/** A call as both requests carry it. */
interface CallFields extends ScheduleFields {
  readonly endpoint: string;
  readonly input: CallInput;
  readonly idempotencyKey: string;
  readonly replay?: Replay;
  readonly webhook: string;
  readonly key: string;
  readonly tags: readonly string[];
}

/** How a call was sent. */
interface Sent {
  readonly ctx: HandlerContext;
  readonly origin: Origin;
  readonly bodies?: StreamedBodies | undefined;
  /** Of what is no repeat. */
  readonly refusal: Problem | undefined;
}

/** Checks a call. Throws if it is invalid, or rejects if it has files. */
function read(
  deployment: Deployment,
  call: CallFields,
  { ctx, origin, bodies, refusal }: Sent,
): Submission | Promise<Submission> {
  if (refusal !== undefined && call.idempotencyKey === "") {
    throw refusal;
  }
  const { manifest, reader } = deployment.taskEndpoint(call.endpoint);
  const schedule = scheduleOf(call, {
    nowMs: Date.now(),
    maxRetentionMs: deployment.maxRetentionMs,
  });
  checkKey(call);
  const request = shownRequest(ctx, manifest);
  const webhook = call.webhook || undefined;
  const key = keyOf(ctx, call.key, manifest);
  const tags = tagsOf(call.tags);
  const toSubmission = (payload: Payload): Submission => {
    const idempotency = idempotencyOf(call, () => digestOfCall(payload, scheduleText(call)));
    return {
      endpoint: manifest,
      payload: withRequest(payload, request),
      options: { ...schedule, key, idempotency, refusal, origin, webhook, tags },
    };
  };
  const { files, readers } = deployment;
  const payload = reader.read(inputOf(call.input, bodies), files.task, readers);
  return payload instanceof Promise ? payload.then(toSubmission) : toSubmission(payload);
}

/** Checks each of the calls on its own. */
async function readAll(
  deployment: Deployment,
  calls: readonly CallFields[],
  sent: Sent,
): Promise<(Submission | Problem)[]> {
  const all: (Submission | Problem)[] = [];
  for (const [index, call] of calls.entries()) {
    if (index % MAX_CALLS_PER_TURN === MAX_CALLS_PER_TURN - 1) {
      await nextTurn();
    }
    try {
      all.push(await read(deployment, call, sent));
    } catch (err) {
      all.push(toProblem(err));
    }
  }
  return all;
}

function toResult(outcome: Submitted | Problem | undefined, deployment: string): SubmittedTask {
  if (outcome === undefined) {
    throw new Error("there are fewer outcomes than calls");
  }
  if (!(outcome instanceof Problem)) {
    const { task, replayed } = outcome;
    const value = toTaskMessage(task, deployment);
    return create(SubmittedTaskSchema, { outcome: { case: "task", value }, replayed });
  }
  const { code, reason, rawMessage, violations, retryAfterMs } = outcome;
  const value = {
    code: codeToString(code),
    reason,
    message: rawMessage,
    fieldViolations: [...violations],
    ...(retryAfterMs !== undefined && { retryAfter: durationFromMs(retryAfterMs) }),
  };
  return create(SubmittedTaskSchema, { outcome: { case: "error", value } });
}

// The parameters of a submit other than its arguments, as SubmitTask and
// SubmitTasks check them: schedule, priority and idempotency key.

/** Highest priority of a task; the lowest is its negative. */
export const MAX_PRIORITY = 100;
const DAY_MS = 86_400_000;
/** How far ahead a task may be scheduled. */
export const MAX_DELAY_DAYS = 30;
/** How far ahead the deadline for a task's start may be. */
export const MAX_START_BY_DAYS = 365;
/** The shortest time for which a task can be kept after its end. */
export const MIN_RETENTION_MS = 1_000;

interface ScheduleFields {
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
function checkKey({ idempotencyKey: key, replay }: KeyFields): void {
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
