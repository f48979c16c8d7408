/** The answers of the data plane, written from the messages of TaskService, in the words of each client. */

import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { FastifyReply } from "fastify";
import {
  FailureReason,
  QueuedCode,
  type Task,
  type TaskAccess,
  type TaskArgumentFile,
  type TaskArguments,
  type TaskAttempt,
  type TaskFailure,
  type TaskResult,
  TaskStatus,
} from "../../../gen/tessera/v1/task_pb.js";
import { NO_BYTES } from "../http/body.ts";
import { sendCompressed } from "../http/compression.ts";
import { SANDBOX } from "../http/content-security-policy.ts";
import { JSON_TYPE } from "../http/problem.ts";
import { applyHead, dispositionOf, hasNoContent } from "../http/response-head.ts";
import type { StreamedBodies } from "../http/streamed-bodies.ts";
import { WORKER_HEADER } from "../http/worker-header.ts";
import { type ResultQuery, sendAsked, sendNothing, sendWhole } from "./content.ts";

/** Headers of a call of an api: which worker its answer is from, and what its key has left of a rate. */
const CALL_HEADERS = [WORKER_HEADER, "ratelimit", "ratelimit-policy"] as const;

/** Sets those of these headers that the call has set. */
export function passCallHeaders(
  reply: FastifyReply,
  { header }: { readonly header: Headers },
): void {
  for (const name of CALL_HEADERS) {
    const value = header.get(name);
    if (value !== null) {
      reply.header(name, value);
    }
  }
}

/** Answers 202, also for a task that existed already. `path`: what its own paths are below. */
export function sendSubmitted(
  reply: FastifyReply,
  task: Task,
  {
    words,
    replayed,
    path,
  }: { readonly words: Words; readonly replayed: boolean; readonly path: string },
): void {
  // A new task has the status in which it was accepted, even if a worker claimed it at once.
  const status = words[replayed ? task.status : TaskStatus.QUEUED];
  reply
    .code(202)
    .header("location", `${path}/status?task_id=${task.taskId}`)
    .header("content-type", JSON_TYPE)
    .send(submittedJson(task, status));
}

/** Written by hand, because every submit is answered with it: ids, words and times need no escaping. */
function submittedJson(task: Task, status: string): string {
  const { taskId, retryOf, queuePosition, estimatedStart } = task;
  const times = `"created_at":"${time(task.createdAt)}","expires_at":"${time(task.expiresAt)}"`;
  const retry = retryOf === "" ? "" : `,"retry_of":"${retryOf}"`;
  const position = queuePosition === undefined ? "" : `,"queue_position":${queuePosition}`;
  const start = estimatedStart === undefined ? "" : `,"estimated_start":"${time(estimatedStart)}"`;
  return `{"task_id":"${taskId}","status":"${status}",${times}${retry}${position}${start}}`;
}

/** Answers with the state of a task. */
export function sendStatus(reply: FastifyReply, task: Task, words: Words): void | Promise<void> {
  const { progress, failure } = task;
  const answer = {
    task_id: task.taskId,
    status: words[task.status],
    created_at: time(task.createdAt),
    started_at: time(task.startedAt),
    finished_at: time(task.finishedAt),
    expires_at: time(task.expiresAt),
    attempt: task.attempt,
    priority: task.priority,
    run_at: time(task.runAt),
    start_by: time(task.startBy),
    progress: progress ? { fraction: progress.fraction, message: progress.message } : null,
    retry_of: task.retryOf === "" ? null : task.retryOf,
    ...(task.key !== "" && { key: task.key }),
    tags: task.tags,
    failure: failure ? failureJson(failure) : null,
    attempts: task.attempts.map(attemptJson),
    ...place(task),
    queued_reason: task.queuedReason && {
      code: QueuedCode[task.queuedReason.code].toLowerCase(),
      message: task.queuedReason.message,
    },
  };
  return sendCompressed(reply.header("content-type", JSON_TYPE), JSON.stringify(answer));
}

function attemptJson(attempt: TaskAttempt) {
  const { number, worker, node, startedAt, endedAt, failure, retryAt, peakMemoryBytes } = attempt;
  return {
    number,
    worker,
    node,
    started_at: time(startedAt),
    ended_at: time(endedAt),
    failure: failure ? failureJson(failure) : null,
    retry_at: time(retryAt),
    peak_memory_bytes: peakMemoryBytes === undefined ? null : Number(peakMemoryBytes),
  };
}

/** Answers with the status of a task after its cancellation. */
export function sendCancelled(reply: FastifyReply, task: Task, words: Words): void {
  const answer = { task_id: task.taskId, status: words[task.status] };
  reply.header("content-type", JSON_TYPE).send(JSON.stringify(answer));
}

/** Answers with the access of a task. */
export function sendAccess(
  reply: FastifyReply,
  { access, expiresAt, path, url }: TaskAccess,
): void {
  const answer = { access, expires_at: time(expiresAt), path, ...(url !== "" && { url }) };
  reply.header("content-type", JSON_TYPE).send(JSON.stringify(answer));
}

/** How a result is sent. */
interface ResultSending {
  /** Bodies outside the message. */
  readonly bodies: StreamedBodies;
  /** A request that may ask for a range, or for the head only. */
  readonly asked?: ResultQuery;
}

/** Sends the result as the function returned it; a promise only if its bytes have to be awaited. */
export function sendResult(
  reply: FastifyReply,
  { result, filename }: TaskResult,
  { bodies, asked }: ResultSending,
): void | Promise<void> {
  if (result.case !== "body") {
    throw new Error("a result was not given as a body");
  }
  const { contentType, data } = result.value;
  // A JSON file is sent as a file: only its name distinguishes it from a value.
  if (contentType === "application/json" && filename === "") {
    reply.header("content-type", JSON_TYPE);
  } else {
    describeFile(reply, contentType, filename);
  }
  const content = bodies.response ?? bodies.text ?? asBuffer(data);
  const { head } = bodies;
  if (head) {
    applyHead(reply, head);
    if (hasNoContent(head.status)) {
      return sendNothing(reply, content);
    }
  }
  // Conditions and ranges are about a result that is there, which another status does not say.
  const isPlain = head?.status === undefined || head.status === 200;
  return asked && isPlain ? sendAsked(asked, reply, content) : sendWhole(reply, content);
}

/** Sends the arguments of a task: their JSON as it is stored, and the facts of their files. */
export function sendArguments(
  reply: FastifyReply,
  { files }: TaskArguments,
  { bodies, asked }: Required<ResultSending>,
): void | Promise<void> {
  const facts = files.map(({ argument, filename, contentType, size }) => ({
    argument,
    filename,
    content_type: contentType,
    size: Number(size),
  }));
  reply.header("content-type", JSON_TYPE);
  const json = `{"arguments":${bodies.text ?? "{}"},"files":${JSON.stringify(facts)}}`;
  return sendAsked(asked, reply, json);
}

/** Sends a file of the arguments of a task as it was given; it is never shown as a page. */
export function sendArgumentFile(
  reply: FastifyReply,
  { body, filename }: TaskArgumentFile,
  { bodies, asked }: Required<ResultSending>,
): void | Promise<void> {
  const { contentType = "", data = NO_BYTES } = body ?? {};
  describeFile(reply, contentType || "application/octet-stream", filename, "attachment");
  return sendAsked(asked, reply, bodies.response ?? asBuffer(data));
}

function describeFile(
  reply: FastifyReply,
  contentType: string,
  filename: string,
  disposition: string = dispositionOf(contentType),
): void {
  reply
    .header("content-type", contentType)
    // Browsers must not run a result as a page of this origin.
    .header("content-security-policy", disposition === "inline" ? SANDBOX : "sandbox");
  if (filename !== "") {
    reply.header("content-disposition", contentDisposition(disposition, filename));
  } else if (!contentType.startsWith("text/plain")) {
    reply.header("content-disposition", disposition);
  }
}

/** The position of a waiting task, and what it waits for, if known. */
function place({ queuePosition, estimatedStart, waitsFor }: Task): object {
  return {
    queue_position: queuePosition,
    estimated_start: estimatedStart && time(estimatedStart),
    waits_for: waitsFor || undefined,
  };
}

/** A failure as the data plane writes it. */
export function failureJson({ reason, code, message }: TaskFailure): object {
  return { reason: FailureReason[reason].toLowerCase(), code, message };
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** `Content-Disposition` by RFC 6266, with a plain name for clients that read only that. */
function contentDisposition(disposition: string, filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `${disposition}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

// RFC 3339 times, written from a cache of seconds.

const SECOND_MS = 1_000;

/**
 * Seconds whose text is cached: more than those in which tasks of the same moment were created
 * or expire.
 */
const MAX_CACHED_SECONDS = 64;

/** `2026-03-01T12:34:56.` by seconds since 1970. */
const seconds = new Map<number, string>();

/** The rest of such a text, by milliseconds. */
const ENDS = Array.from({ length: SECOND_MS }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

/** A timestamp in RFC 3339, in UTC and with milliseconds; null if absent. */
export function time(timestamp: Timestamp | undefined): string | null {
  return timestamp ? utc(timestampMs(timestamp)) : null;
}

/**
 * Writes the same as `Date.toISOString`, at a fraction of its cost under load,
 * where nearly all times fall into a cached second.
 */
export function utc(timeMs: number): string {
  const second = Math.floor(timeMs / SECOND_MS);
  let text = seconds.get(second);
  if (text === undefined) {
    text = new Date(second * SECOND_MS).toISOString().slice(0, -"000Z".length);
    if (seconds.size >= MAX_CACHED_SECONDS) {
      seconds.clear();
    }
    seconds.set(second, text);
  }
  return `${text}${ENDS[timeMs - second * SECOND_MS]}`;
}

/*
 * The words for a task's status, by client. BentoML's Python clients raise an
 * error on an unknown word, and the words that they know depend on their
 * version; all other clients get Tessera's own.
 */

type Words = Readonly<Record<TaskStatus, string>>;

const OWN: Words = {
  [TaskStatus.UNSPECIFIED]: "",
  [TaskStatus.QUEUED]: "queued",
  [TaskStatus.RUNNING]: "running",
  [TaskStatus.SUCCESS]: "success",
  [TaskStatus.FAILURE]: "failure",
  [TaskStatus.CANCELLED]: "cancelled",
};

/** For clients from 1.4.14. */
const BENTOML: Words = {
  ...OWN,
  [TaskStatus.QUEUED]: "pending",
  [TaskStatus.RUNNING]: "in_progress",
  [TaskStatus.SUCCESS]: "completed",
  [TaskStatus.FAILURE]: "failed",
  [TaskStatus.CANCELLED]: "canceled",
};

/** For clients before 1.4.14, which know no word for a task that has not started. */
const BENTOML_BEFORE_1_4_14: Words = {
  ...OWN,
  [TaskStatus.QUEUED]: "in_progress",
  [TaskStatus.RUNNING]: "in_progress",
};

const BENTOML_CLIENT = /^BentoML HTTP Client\/(\d+)\.(\d+)\.(\d+)/;

/** True for the `User-Agent` of BentoML's own clients. */
export function isBentomlClient(userAgent: string | undefined): userAgent is string {
  return userAgent?.startsWith("BentoML") === true;
}

/** The words for the client with this `User-Agent`. */
export function wordsFor(userAgent: string | undefined): Words {
  if (!isBentomlClient(userAgent)) {
    return OWN;
  }
  const [, major, minor, patch] = BENTOML_CLIENT.exec(userAgent) ?? [];
  if (major === undefined) {
    return OWN;
  }
  const version = Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch);
  return version >= 1_004_014 ? BENTOML : BENTOML_BEFORE_1_4_14;
}
