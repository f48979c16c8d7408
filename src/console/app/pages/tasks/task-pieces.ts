/** The pieces of a task's streamed result as the page shows them: one text, bounded. */
import type { TaskPieceJson } from "../../../../../gen/tessera/v1/task_pb.js";

/** Of longer results the page shows the end. */
const MAX_PIECES_CHARACTERS = 100_000;

export interface TaskPieces {
  /** The attempt that gives them; 0 before the first. */
  readonly attempt: number;
  readonly count: number;
  readonly text: string;
  readonly isCut: boolean;
}

export const NO_PIECES: TaskPieces = { attempt: 0, count: 0, text: "", isCut: false };

/** Adds pieces. Those of a later attempt replace all before. */
export function withPieces(before: TaskPieces, added: readonly TaskPieceJson[]): TaskPieces {
  const attempt = added.at(-1)?.attempt ?? before.attempt;
  const kept = attempt === before.attempt ? before : { ...NO_PIECES, attempt };
  const own = added.filter((piece) => piece.attempt === attempt);
  const text = kept.text + own.map(textOf).join("");
  return {
    attempt,
    count: Number(own.at(-1)?.sequence ?? kept.count),
    text: text.slice(-MAX_PIECES_CHARACTERS),
    isCut: kept.isCut || text.length > MAX_PIECES_CHARACTERS,
  };
}

/** A text as it is, any other value as a line of JSON, bytes by their length. */
function textOf({ value, body }: TaskPieceJson): string {
  if (body !== undefined) {
    return `${atob(body.data ?? "").length} bytes\n`;
  }
  return typeof value === "string" ? value : `${JSON.stringify(value ?? null)}\n`;
}
