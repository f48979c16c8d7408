/** The stored pieces of a task's streamed result as messages: StreamTask, and events of WatchTask. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  ResultFormat,
  type StreamTaskRequest,
  type StreamTaskResponse,
  StreamTaskResponseSchema,
  type TaskEvent,
  TaskEventSchema,
  type TaskPiece,
  TaskPieceSchema,
  TaskRestartSchema,
} from "../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../deployments/deployment.ts";
import { problem } from "../../errors.ts";
import type { WatchedEvent } from "../../queue/events/watch.ts";
import type { StreamedPiece } from "../../queue/pieces/reader.ts";
import type { TaskQuestion } from "../../queue/tasks.ts";
import { bodyMessage } from "../../server/http/body.ts";
import { deploymentOf } from "../../server/rpc/interceptors/access.ts";
import { pieceTypeOf } from "../../service/piece-type.ts";
import type { PiecePosition } from "../../storage/pieces.ts";
import { toEventMessage } from "./messages.ts";
import { refuseUnsuccessful } from "./result.ts";
import { toValue } from "./value.ts";

/** Streams what comes after the caller's last piece, then throws unless the task has succeeded. */
export async function* streamTask(
  req: StreamTaskRequest,
  ctx: HandlerContext,
  question: TaskQuestion,
): AsyncGenerator<StreamTaskResponse> {
  const deployment = deploymentOf(ctx);
  const { tasks } = deployment;
  const endpoint = deployment.find((await tasks.get({ ...question, waitMs: 0 })).endpoint);
  if (endpoint && endpoint.stream === undefined) {
    const description = `is of the endpoint ${endpoint.name}, which gives its result at once: get the result instead`;
    const violations = [{ field: "task_id", description }];
    throw problem("REQUEST_INVALID", `the task ${description}`, { violations });
  }
  const events = tasks.pieces(question, positionOf(req));
  try {
    for (;;) {
      const { done, value } = await events.next();
      if (done) {
        // The caller has gone where there is no task.
        return value === undefined || value.status === "success"
          ? undefined
          : refuseUnsuccessful(value);
      }
      yield value.kind === "piece"
        ? pieceResponse(toPieceMessage(value.piece, deployment, req.resultFormat))
        : restartResponse(value.attempt);
    }
  } finally {
    await events.return(undefined);
  }
}

/** The place after the last piece that a caller has. */
export function positionOf(req: {
  readonly afterAttempt: number;
  readonly afterPiece: bigint;
}): PiecePosition {
  return { attempt: req.afterAttempt, sequence: Number(req.afterPiece) };
}

/** An event of a task's log, or a piece among them. */
export function toWatchedMessage(
  watched: WatchedEvent,
  deployment: Pick<Deployment, "find">,
): TaskEvent {
  if (watched.kind === "event") {
    return toEventMessage(watched.event);
  }
  const { piece, sequence } = watched;
  const value = toPieceMessage(piece, deployment, ResultFormat.VALUE);
  const event = { case: "piece" as const, value };
  return create(TaskEventSchema, { sequence: BigInt(sequence), attempt: piece.attempt, event });
}

function toPieceMessage(
  { endpoint, attempt, sequence, form, data }: StreamedPiece,
  deployment: Pick<Deployment, "find">,
  format: ResultFormat,
): TaskPiece {
  const numbered = { attempt, sequence: BigInt(sequence) };
  if (typeof data !== "string" || format === ResultFormat.BODY) {
    const bytes = typeof data === "string" ? Buffer.from(data) : data;
    const value = bodyMessage(pieceTypeOf(form, deployment.find(endpoint)), bytes);
    return create(TaskPieceSchema, { ...numbered, piece: { case: "body", value } });
  }
  const text = form === "text" ? JSON.stringify(data) : data;
  const value = toValue(text, { what: `piece ${sequence}`, from: `GET /${endpoint}/stream` });
  return create(TaskPieceSchema, { ...numbered, piece: { case: "value", value } });
}

function pieceResponse(value: TaskPiece): StreamTaskResponse {
  return create(StreamTaskResponseSchema, { event: { case: "piece", value } });
}

function restartResponse(attempt: number): StreamTaskResponse {
  const value = create(TaskRestartSchema, { attempt });
  return create(StreamTaskResponseSchema, { event: { case: "restart", value } });
}
