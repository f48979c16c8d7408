/**
 * The event log of a task as Server-Sent Events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html). Each
 * event carries its sequence number as id, so that a reader that lost its
 * connection can resume after the last event (`Last-Event-ID`).
 */
import { Readable } from "node:stream";
import type { JsonObject, JsonValue, Message } from "@bufbuild/protobuf";
import type { FastifyReply } from "fastify";
import type { TaskEvent } from "../../../gen/tessera/v1/task_pb.js";
import {
  frames,
  openStream,
  STREAM_HEARTBEAT_INTERVAL_MS,
  type StreamFormat,
} from "../http/answer-stream.ts";
import type { StreamAnswer } from "../http/invoke.ts";
import { errorJson, reportProblem } from "../http/problem.ts";
import { failureJson, time, type wordsFor } from "./answer.ts";

const EVENTS: StreamFormat = {
  contentType: "text/event-stream; charset=utf-8",
  item: (json) => {
    const event = json as { readonly sequence: number };
    const kind = ["state", "progress", "log"].find((each) => each in event) ?? "message";
    return `id: ${event.sequence}\nevent: ${kind}\ndata: ${JSON.stringify(json)}\n\n`;
  },
  end: () => "event: end\ndata: {}\n\n",
  error: (found) => `event: error\ndata: ${JSON.stringify(errorJson(found))}\n\n`,
  keepAlive: ": keep-alive\n\n",
};

/** Streams the events of a task. Rejects if the first cannot be read, such as for an unknown task. */
export async function sendEvents(
  reply: FastifyReply,
  answers: StreamAnswer,
  words: ReturnType<typeof wordsFor>,
): Promise<void> {
  // Every task has a first event, which comes at once unless the task does not exist.
  const opened = await openStream(answers);
  const text = frames(opened, {
    format: EVENTS,
    keepAliveMs: STREAM_HEARTBEAT_INTERVAL_MS,
    item: (message) => EVENTS.item(eventJson(message, words)),
    flush: () => reply.raw.flushHeaders(),
    onError: (found) => reportProblem(reply, found),
  });
  reply
    .header("content-type", EVENTS.contentType)
    .header("cache-control", "no-store")
    .header("x-accel-buffering", "no")
    .send(Readable.from(text));
}

function eventJson(message: Message, words: ReturnType<typeof wordsFor>): JsonValue {
  const { sequence, time: at, attempt, event } = message as TaskEvent;
  const common = {
    sequence: Number(sequence),
    time: time(at),
    attempt,
  };
  switch (event.case) {
    case "state": {
      const { status, failure, retryAt } = event.value;
      const state = {
        status: words[status],
        ...(failure && { failure: failureJson(failure) }),
        ...(retryAt && { retry_at: time(retryAt) }),
      };
      return { ...common, state } as JsonObject;
    }
    case "progress":
      return {
        ...common,
        progress: { fraction: event.value.fraction, message: event.value.message },
      };
    case "log": {
      const { level, message: text, fields, line } = event.value;
      const numbered = line > 0 && { line };
      return { ...common, log: { level, message: text, ...(fields && { fields }), ...numbered } };
    }
    default:
      return common;
  }
}
