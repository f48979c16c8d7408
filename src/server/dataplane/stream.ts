/**
 * Streamed results over HTTP, in the form that the caller asks for:
 *
 * - `text/event-stream`: each piece is an event with its number as id and its JSON as data. The
 *   stream ends with the event `end`, or with `error` and the error's JSON.
 * - `application/x-ndjson`: a line of JSON for each piece; an error is a last line `{"error": …}`.
 * - text, or the bytes of a file, as they are: there an error breaks the connection, so that
 *   nobody takes what came before it as complete.
 *
 * An error before the first piece is an ordinary answer. What the socket does not take stops
 * the function: nothing is read ahead.
 */
import { constants, type ServerHttp2Stream } from "node:http2";
import { Readable } from "node:stream";
import type { Message } from "@bufbuild/protobuf";
import type { FastifyReply } from "fastify";
import type { StreamEndpointResponse } from "../../../gen/tessera/v1/endpoint_pb.js";
import { preferredType } from "../http/accept.ts";
import {
  frames,
  openStream,
  STREAM_HEARTBEAT_INTERVAL_MS,
  type StreamFraming,
} from "../http/answer-stream.ts";
import { NO_BYTES } from "../http/body.ts";
import { sendCompressed } from "../http/compression.ts";
import { SANDBOX } from "../http/content-security-policy.ts";
import type { StreamAnswer } from "../http/invoke.ts";
import { errorJson, JSON_TYPE, reportProblem } from "../http/problem.ts";
import { applyHead, dispositionOf } from "../http/response-head.ts";
import type { StreamedBodies } from "../http/streamed-bodies.ts";
import { passCallHeaders } from "./answer.ts";

/** What an endpoint streams. */
export interface StreamedOutput {
  readonly endpoint: string;
  readonly kind: "api" | "task";
  readonly pieces: "json" | "text" | "bytes";
  /** The media type of a piece; of bytes, that of the file they make. */
  readonly contentType: string;
}

export type Pieces = StreamedOutput["pieces"];

/** A form of a streamed result. */
export interface PieceFormat extends StreamFraming {
  /** True for what the function made as it made it. */
  readonly isPlain?: boolean;
  /** What is sent of a piece, which is JSON, text or bytes as the endpoint declares. */
  item(data: Uint8Array, id: string, pieces: Pieces): string | Uint8Array;
  /** What is sent when all pieces before are void; absent where nothing can say so. */
  restart?(attempt: number): string;
}

/** Between the tokens of a JSON text, which may come from any program: it has none within strings. */
const LINE_BREAKS = /\r\n|\r|\n/g;

const EVENTS: PieceFormat = {
  contentType: "text/event-stream; charset=utf-8",
  item: (data, id, pieces) => {
    const lines = jsonOf(data, pieces).replaceAll(LINE_BREAKS, "\ndata: ");
    return `id: ${id}\ndata: ${lines}\n\n`;
  },
  restart: (attempt) => `id: ${attempt}-0\nevent: restart\ndata: {"attempt":${attempt}}\n\n`,
  end: () => "event: end\ndata: {}\n\n",
  error: (found) => `event: error\ndata: ${JSON.stringify(errorJson(found))}\n\n`,
  keepAlive: ": keep-alive\n\n",
};

const LINES: PieceFormat = {
  contentType: "application/x-ndjson; charset=utf-8",
  item: (data, _, pieces) => `${jsonOf(data, pieces).replaceAll(LINE_BREAKS, " ")}\n`,
  end: () => "",
  error: (found) => `${JSON.stringify({ error: errorJson(found) })}\n`,
  keepAlive: "",
};

function jsonOf(data: Uint8Array, pieces: Pieces): string {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  switch (pieces) {
    case "json":
      return bytes.toString();
    case "text":
      return JSON.stringify(bytes.toString());
    case "bytes":
      return `"${bytes.toString("base64")}"`;
  }
}

function plain(contentType: string): PieceFormat {
  return {
    contentType,
    isPlain: true,
    item: (data) => data,
    end: () => "",
    error: () => undefined,
    keepAlive: "",
  };
}

/** The form of one JSON text with the whole result: a list of values, or a string. */
export const WHOLE = "whole";

type Form = PieceFormat | typeof WHOLE;

/** The types that an endpoint's result is offered in, the preferred one first. */
function offers({ kind, pieces, contentType }: StreamedOutput): readonly [string, Form][] {
  const lines: readonly [string, Form][] = [
    ["application/x-ndjson", LINES],
    ["application/jsonl", { ...LINES, contentType: "application/jsonl; charset=utf-8" }],
  ];
  const events: [string, Form] = ["text/event-stream", EVENTS];
  // The whole result of a task has a path of its own.
  const whole: [string, Form][] = kind === "api" ? [["application/json", WHOLE]] : [];
  const own: [string, Form] = [contentType, plain(contentType)];
  const type = contentType.split(";", 1)[0];
  // A text that is events itself is sent as it is, not as the data of other events.
  const others = [events, ...lines].filter(([other]) => other !== type);
  switch (pieces) {
    case "bytes":
      return [own, ...others];
    case "text":
      return [own, ...others, ...whole];
    case "json":
      return [...lines, events, ...whole];
  }
}

/**
 * The form that `Accept` asks for. It says what a client likes best: where it takes none of them, it
 * gets the first (RFC 9110, section 12.5.1).
 */
export function chooseForm(accept: string | undefined, output: StreamedOutput): Form {
  const offered = new Map(offers(output));
  const [first] = offered.keys();
  const type = preferredType(accept, [...offered.keys()]) ?? first;
  return offered.get(type as string) as Form;
}

/** Sends a whole result, which is in `bodies`. */
export function sendWhole(
  reply: FastifyReply,
  { text = "", head }: StreamedBodies,
  { pieces }: StreamedOutput,
): void | Promise<void> {
  const json = pieces === "text" ? JSON.stringify(text) : text;
  reply.header("content-type", JSON_TYPE);
  if (head) {
    applyHead(reply, head, { keepsType: true });
  }
  return sendCompressed(reply, json);
}

/** Sends the pieces as they come. Rejects with what ended the stream before the first of them. */
export function sendPieces(
  reply: FastifyReply,
  answers: StreamAnswer,
  { form, pieces, bodies }: PiecesSending,
): Promise<void> {
  const item = (message: Message) => {
    const { sequence, piece } = message as StreamEndpointResponse;
    const data = piece.case === "body" ? piece.value.data : NO_BYTES;
    return form.item(data, String(sequence), pieces);
  };
  return sendFrames(reply, answers, { form, pieces, item, bodies });
}

interface PiecesSending {
  readonly form: PieceFormat;
  readonly pieces: Pieces;
  /** Where what the function says of its answer is found with the first piece. */
  readonly bodies: StreamedBodies;
}

interface FramesSending {
  readonly form: PieceFormat;
  item(message: Message): string | Uint8Array;
  readonly pieces: Pieces;
  readonly bodies?: StreamedBodies;
  /** How long the headers wait for the first message; absent: until it comes. */
  readonly maxWaitMs?: number;
}

/** Sends what `item` makes of the messages. Rejects with what comes before the first of them. */
export async function sendFrames(
  reply: FastifyReply,
  answers: StreamAnswer,
  { form, pieces, item, bodies, maxWaitMs }: FramesSending,
): Promise<void> {
  const opened = await openStream(answers, maxWaitMs);
  const sent = frames(opened, {
    format: form,
    keepAliveMs: STREAM_HEARTBEAT_INTERVAL_MS,
    item,
    flush: () => reply.raw.flushHeaders(),
    onError: (found) => {
      reportProblem(reply, found);
      if (form.error(found) === undefined) {
        breakOff(reply);
      }
    },
  });
  reply
    .header("content-type", form.contentType)
    .header("tessera-pieces", pieces)
    // Without it, nginx would buffer the stream.
    .header("x-accel-buffering", "no")
    // Browsers must not run a result as a page of this origin.
    .header("content-security-policy", SANDBOX);
  passCallHeaders(reply, answers);
  if (form.isPlain === true && pieces === "bytes") {
    reply.header("content-disposition", dispositionOf(form.contentType));
  }
  if (bodies?.head) {
    applyHead(reply, bodies.head, { keepsType: form.isPlain !== true });
  }
  reply.send(Readable.from(sent, { highWaterMark: 1 }));
}

/**
 * Resets the stream of an answer over HTTP/2, which would end as if it were complete: what ends
 * a connection over HTTP/1.1 closes it there without an error.
 */
function breakOff({ raw }: FastifyReply): void {
  const { stream } = raw as { readonly stream?: ServerHttp2Stream };
  stream?.close(constants.NGHTTP2_INTERNAL_ERROR);
}
