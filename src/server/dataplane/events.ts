/**
 * The event log of a task as Server-Sent Events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html), with the
 * pieces of a streamed result among them. Each event carries its sequence
 * number as id, and once there was a piece, the attempt and number of the last
 * one (`7-1-42`), so that a reader that lost its connection can resume after
 * the last event (`Last-Event-ID`).
 */
import { Readable } from "node:stream";
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { FastifyReply } from "fastify";
import type { TaskEvent, TaskPiece } from "../../../gen/tessera/v1/task_pb.js";
import {
  frames,
  openStream,
  STREAM_HEARTBEAT_INTERVAL_MS,
  type StreamFormat,
} from "../http/answer-stream.ts";
import type { StreamAnswer } from "../http/invoke.ts";
import { errorJson, reportProblem } from "../http/problem.ts";
import { failureJson, time, type wordsFor } from "./answer.ts";
import { type EventPosition, idOf } from "./event-id.ts";

const EVENTS: StreamFormat = {
  contentType: "text/event-stream; charset=utf-8",
  item: (json) => {
    const [id, event] = json as [id: string, event: JsonObject];
    const kind = ["state", "progress", "log", "piece"].find((each) => each in event) ?? "message";
    return `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify(event)}\n\n`;
  },
  end: () => "event: end\ndata: {}\n\n",
  error: (found) => `event: error\ndata: ${JSON.stringify(errorJson(found))}\n\n`,
  keepAlive: ": keep-alive\n\n",
};

/** Streams the events of a task. Rejects if the first cannot be read, such as for an unknown task. */
export async function sendEvents(
  reply: FastifyReply,
  answers: StreamAnswer,
  { words, after }: { readonly words: ReturnType<typeof wordsFor>; readonly after: EventPosition },
): Promise<void> {
  let position = after;
  // Every task has a first event, which comes at once unless the task does not exist.
  const opened = await openStream(answers);
  const text = frames(opened, {
    format: EVENTS,
    keepAliveMs: STREAM_HEARTBEAT_INTERVAL_MS,
    item: (message) => {
      const event = message as TaskEvent;
      position = positionAfter(event, position);
      return EVENTS.item([idOf(position), eventJson(event, words)]);
    },
    flush: () => reply.raw.flushHeaders(),
    onError: (found) => reportProblem(reply, found),
  });
  reply
    .header("content-type", EVENTS.contentType)
    .header("x-accel-buffering", "no")
    .send(Readable.from(text));
}

function positionAfter({ sequence, event }: TaskEvent, before: EventPosition): EventPosition {
  return event.case === "piece"
    ? { ...before, afterAttempt: event.value.attempt, afterPiece: event.value.sequence }
    : { ...before, afterSequence: sequence };
}

function eventJson(
  { sequence, time: at, attempt, event }: TaskEvent,
  words: ReturnType<typeof wordsFor>,
): JsonObject {
  const common = {
    sequence: Number(sequence),
    ...(at && { time: time(at) }),
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
    case "piece": {
      const number = Number(event.value.sequence);
      return { ...common, piece: { number, ...pieceJson(event.value) } } as JsonObject;
    }
    default:
      return common;
  }
}

/** A JSON value or a text as `value`, bytes in base64 as `data`. */
function pieceJson({ piece }: TaskPiece): object {
  if (piece.case !== "body") {
    return { value: piece.value ? toJson(ValueSchema, piece.value) : null };
  }
  const { contentType, data } = piece.value;
  return { content_type: contentType, data: Buffer.from(data).toString("base64") };
}
