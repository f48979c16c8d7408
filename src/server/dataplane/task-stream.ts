/**
 * The streamed result of a task over HTTP, in the forms of `stream.ts`. The id of a piece is its
 * attempt and number, with which a reader of events resumes. Where the task begins anew, events
 * say so; in the other forms what was sent cannot be taken back, and the stream ends with
 * TASK_RESTARTED.
 */
import type { Message } from "@bufbuild/protobuf";
import type { FastifyReply } from "fastify";
import type { StreamTaskResponse } from "../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../errors.ts";
import type { StreamAnswer } from "../http/invoke.ts";
import { pieceIdOf } from "./event-id.ts";
import {
  chooseForm,
  type PieceFormat,
  type Pieces,
  type StreamedOutput,
  sendFrames,
  WHOLE,
} from "./stream.ts";

/** How long the headers of an event stream wait for the first piece: the task may be queued. */
const STREAM_HEADERS_DELAY_MS = 500;

/** How a task's pieces are sent. */
interface TaskForm {
  readonly format: PieceFormat;
  readonly pieces: Pieces;
}

/**
 * The form that `Accept` asks for. `output` is undefined if the endpoint does not exist any more;
 * its pieces are then read as what their own type says.
 */
export function chooseTaskForm(
  accept: string | undefined,
  output: StreamedOutput = { ...UNKNOWN },
): TaskForm {
  const format = chooseForm(accept, output);
  if (format === WHOLE) {
    throw new Error("the whole result of a task was chosen as a stream of it");
  }
  return { format, pieces: output.pieces };
}

const UNKNOWN: StreamedOutput = {
  endpoint: "a task",
  kind: "task",
  pieces: "json",
  contentType: "application/json",
};

/** Sends the pieces as they come. Rejects with what ended the stream before the first of them. */
export async function sendTaskPieces(
  reply: FastifyReply,
  answers: StreamAnswer,
  { format, pieces }: TaskForm,
): Promise<void> {
  const item = (message: Message): string | Uint8Array => {
    const { event } = message as StreamTaskResponse;
    if (event.case === "restart") {
      return format.restart?.(event.value.attempt) ?? restarted(event.value.attempt);
    }
    const { attempt = 0, sequence = 0n, piece } = event.value ?? {};
    const { contentType, data } = piece?.case === "body" ? piece.value : NOTHING;
    return format.item(data, pieceIdOf(attempt, sequence), formOf(contentType, pieces));
  };
  // Only events show a caller who waits that the connection lives.
  const waits = format.keepAlive !== "" && { maxWaitMs: STREAM_HEADERS_DELAY_MS };
  await sendFrames(reply, answers, { form: format, pieces, item, ...waits });
}

const NOTHING = { contentType: "application/octet-stream", data: new Uint8Array(0) };

/** What a piece is: as the endpoint declares, unless it declared something else when it ran. */
function formOf(contentType: string, declared: Pieces): Pieces {
  if (declared === "bytes") {
    return declared;
  }
  if (contentType === "application/json") {
    return "json";
  }
  return declared === "text" || contentType.startsWith("text/plain") ? "text" : "bytes";
}

function restarted(attempt: number): never {
  throw problem(
    "TASK_RESTARTED",
    `the task began anew with attempt ${attempt}, and what was sent of its result is void: ask for it from its beginning`,
  );
}
