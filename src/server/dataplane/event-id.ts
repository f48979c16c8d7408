/** The ids of Server-Sent Events about a task, by which readers resume (`Last-Event-ID`). */
import type { FastifyRequest } from "fastify";
import { invalid, queryParameter } from "./request.ts";

/** After which event of a task's log, and after which piece of its result. */
export interface EventPosition {
  readonly afterSequence: bigint;
  /** 0: before any piece. */
  readonly afterAttempt: number;
  readonly afterPiece: bigint;
}

/** The id of an event of the log: `7`, or `7-1-42` once there was a piece. */
export function idOf({ afterSequence, afterAttempt, afterPiece }: EventPosition): string {
  return afterAttempt === 0
    ? String(afterSequence)
    : `${afterSequence}-${afterAttempt}-${afterPiece}`;
}

/** The position that a request asks for, in its header or query. Errors: REQUEST_INVALID. */
export function lastEventId(req: FastifyRequest): EventPosition {
  const id = /^(\d{1,15})(?:-(\d{1,9})-(\d{1,15}))?$/.exec(given(req) ?? "0");
  if (id === null) {
    throw invalid("Last-Event-ID", "must be the number of an event");
  }
  const [, sequence = 0, attempt = 0, piece = 0] = id;
  return {
    afterSequence: BigInt(sequence),
    afterAttempt: Number(attempt),
    afterPiece: BigInt(piece),
  };
}

/** The id of a piece: its attempt and number, `1-42`. */
export function pieceIdOf(attempt: number, sequence: bigint): string {
  return `${attempt}-${sequence}`;
}

/** The same for ids of pieces. */
export function lastPieceId(req: FastifyRequest): Omit<EventPosition, "afterSequence"> {
  const id = /^(\d{1,9})-(\d{1,15})$/.exec(given(req) ?? "0-0");
  if (id === null) {
    throw invalid("Last-Event-ID", "must be the id of a piece, such as 1-42");
  }
  return { afterAttempt: Number(id[1]), afterPiece: BigInt(id[2] ?? 0) };
}

function given(req: FastifyRequest): string | undefined {
  const header = req.headers["last-event-id"];
  return header === undefined ? queryParameter(req, "last_event_id") : String(header);
}
