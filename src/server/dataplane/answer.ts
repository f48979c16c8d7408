/** Answers of the data plane, from the messages of TaskService. */
import type { FastifyReply } from "fastify";
import {
  FailureReason,
  type Task,
  type TaskFailure,
  type TaskResult,
  TaskStatus,
} from "../../../gen/tessera/v1/task_pb.js";
import { JSON_TYPE } from "../http/problem.ts";
import type { StreamedBodies } from "../http/streamed.ts";
import { type ResultQuery, sendAsked, sendWhole } from "./content.ts";
import { time } from "./time.ts";
import type { wordsFor } from "./words.ts";

type Words = ReturnType<typeof wordsFor>;

/** 202, also for a task that was known already. */
export function sendSubmitted(
  reply: FastifyReply,
  task: Task,
  { words, replayed }: { readonly words: Words; readonly replayed: boolean },
): void {
  // A new task is told as it was accepted, even where a worker took it at once.
  const status = words[replayed ? task.status : TaskStatus.QUEUED];
  reply
    .code(202)
    .header("location", `/${task.endpoint}/status?task_id=${task.taskId}`)
    .header("content-type", JSON_TYPE)
    .send(submittedJson(task, status));
}

/** Put together by hand, because every submit is answered with it: ids, words and times need no escaping. */
function submittedJson(task: Task, status: string): string {
  const { taskId, retryOf, queuePosition, estimatedStart } = task;
  const times = `"created_at":"${time(task.createdAt)}","expires_at":"${time(task.expiresAt)}"`;
  const retry = retryOf === "" ? "" : `,"retry_of":"${retryOf}"`;
  const position = queuePosition === undefined ? "" : `,"queue_position":${queuePosition}`;
  const start = estimatedStart === undefined ? "" : `,"estimated_start":"${time(estimatedStart)}"`;
  return `{"task_id":"${taskId}","status":"${status}",${times}${retry}${position}${start}}`;
}

export function sendStatus(reply: FastifyReply, task: Task, words: Words): void {
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
    failure: failure ? failureJson(failure) : null,
    ...place(task),
  };
  sendJson(reply, answer);
}

export function sendCancelled(reply: FastifyReply, task: Task, words: Words): void {
  sendJson(reply, { task_id: task.taskId, status: words[task.status] });
}

/** How a result is sent. */
export interface ResultSending {
  /** What goes beside the message. */
  readonly bodies: StreamedBodies;
  /** A request that may ask for a part of it, or for its head. */
  readonly asked?: ResultQuery;
}

/** The result in the form in which the function gave it; a promise only where its bytes have to be waited for. */
export function sendResult(
  reply: FastifyReply,
  { result, filename }: TaskResult,
  { bodies, asked }: ResultSending,
): void | Promise<void> {
  if (result.case !== "body") {
    throw new Error("a result was not given as a body");
  }
  const { contentType, data } = result.value;
  // A file of JSON is a file: only its name tells it from a value.
  if (contentType === "application/json" && filename === "") {
    reply.header("content-type", JSON_TYPE);
  } else {
    describeFile(reply, contentType, filename);
  }
  const content = bodies.response ?? bodies.text ?? asBuffer(data);
  return asked ? sendAsked(asked, reply, content) : sendWhole(reply, content);
}

function describeFile(reply: FastifyReply, contentType: string, filename: string): void {
  reply
    .header("content-type", contentType)
    // What a function returns is never guessed at, and never a page of this origin.
    .header("x-content-type-options", "nosniff")
    .header("content-security-policy", "sandbox");
  if (filename !== "") {
    reply.header("content-disposition", contentDisposition(filename));
  } else if (!contentType.startsWith("text/plain")) {
    reply.header("content-disposition", "attachment");
  }
}

/** Where a waiting task stands, as far as that is known. */
function place({ queuePosition, estimatedStart }: Task): object {
  return {
    queue_position: queuePosition,
    estimated_start: estimatedStart && time(estimatedStart),
  };
}

export function failureJson({ reason, code, message }: TaskFailure): object {
  return { reason: FailureReason[reason].toLowerCase(), code, message };
}

function sendJson(reply: FastifyReply, answer: object): void {
  reply.header("content-type", JSON_TYPE).send(JSON.stringify(answer));
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** RFC 6266, with the plain name for clients that read only that. */
function contentDisposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
