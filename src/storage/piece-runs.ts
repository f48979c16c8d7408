/**
 * The codec of stored pieces. Consecutive pieces of one append are stored together as a run, one
 * row each: most pieces are short, and a row costs more than a piece. In a run, each piece
 * follows its length in bytes (uint32, big-endian); texts are UTF-8.
 */
import type { PieceAppend, PieceData, PieceForm, StoredPiece } from "./pieces.ts";

/** Bytes of a run before a further piece begins another one: bounds what a reader takes at once. */
const MAX_RUN_BYTES = 64 * 1024;

/** Runs that one read takes at most. */
export const MAX_RUNS_PER_PAGE = 256;

/** The length before each piece. */
const LENGTH_BYTES = 4;

/** How `task_pieces.form` is stored. */
export const FORMS: readonly PieceForm[] = ["json", "text", "bytes"];

interface PieceRun {
  /** The number of its last piece. */
  readonly last: number;
  /** How many pieces it has. */
  readonly count: number;
  readonly data: Buffer;
}

/** The runs of an append, in order. */
export function runsOf({ first, pieces }: Pick<PieceAppend, "first" | "pieces">): PieceRun[] {
  const runs: PieceRun[] = [];
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for (const [index, piece] of pieces.entries()) {
    const data = bytesOf(piece);
    const length = Buffer.allocUnsafe(LENGTH_BYTES);
    length.writeUInt32BE(data.length);
    parts.push(length, data);
    bytes += LENGTH_BYTES + data.length;
    if (bytes >= MAX_RUN_BYTES || index === pieces.length - 1) {
      const data = Buffer.concat(parts, bytes);
      runs.push({ last: first + index, count: parts.length / 2, data });
      parts = [];
      bytes = 0;
    }
  }
  return runs;
}

/** The pieces of a run after `after`. */
export function piecesOf(run: PieceRun, form: PieceForm, after: number): StoredPiece[] {
  const { last, count, data } = run;
  const pieces: StoredPiece[] = [];
  let at = 0;
  for (let sequence = last - count + 1; sequence <= last; sequence += 1) {
    const start = at + LENGTH_BYTES;
    at = start + data.readUInt32BE(at);
    if (sequence > after) {
      pieces.push({ sequence, data: dataOf(data.subarray(start, at), form) });
    }
  }
  return pieces;
}

function bytesOf(piece: PieceData): Uint8Array {
  return typeof piece === "string" ? Buffer.from(piece) : piece;
}

function dataOf(bytes: Buffer, form: PieceForm): PieceData {
  return form === "bytes" ? new Uint8Array(bytes) : bytes.toString();
}
