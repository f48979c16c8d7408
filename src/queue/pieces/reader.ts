/**
 * Reads of streamed results: the stored pieces of a task from a position on, then new ones as
 * they are stored. Every piece comes from the storage in pages, so a reader resumes at any piece
 * and a slow one holds one page.
 */
import { shuttingDown } from "../../errors.ts";
import type { PieceForm, PiecePosition, StoredPiece } from "../../storage/pieces.ts";
import type { Storage, TaskKey } from "../../storage/storage.ts";
import { isFinal, type Task } from "../../tasks/task.ts";
import { type Changes, Wakeups } from "../waits/changes.ts";

/** Stored pieces read at once: bounds what a reader holds in memory. */
export const PIECES_PAGE_BYTES = 256 * 1024;

/** A piece, with the attempt that gave it and the endpoint of its task. */
export interface StreamedPiece extends StoredPiece {
  readonly endpoint: string;
  readonly attempt: number;
  readonly form: PieceForm;
}

export type StreamEvent =
  | { readonly kind: "piece"; readonly piece: StreamedPiece }
  /** The task began anew with this attempt: what earlier attempts gave is void. */
  | { readonly kind: "restart"; readonly attempt: number };

interface ReadPiecesOptions {
  readonly storage: Pick<Storage, "readPieces">;
  readonly changes: Changes;
  readonly key: TaskKey;
  readonly after: PiecePosition;
  /** Ends the reading when the caller has gone. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Streams the pieces after a position until the task has ended, and returns the task; undefined
 * when it was deleted or the caller has gone.
 */
export async function* readPieces(
  options: ReadPiecesOptions,
): AsyncGenerator<StreamEvent, Task | undefined> {
  const { storage, changes, key, signal } = options;
  using wakeups = new Wakeups(changes, key.taskId, signal);
  let { after } = options;
  while (!signal?.aborted) {
    const changed = wakeups.next();
    const page = await storage.readPieces({ ...key, after, maxBytes: PIECES_PAGE_BYTES });
    if (page === undefined) {
      return undefined;
    }
    const { task, form = "json", pieces, more } = page;
    const { attempt, endpoint } = task;
    if (attempt !== after.attempt) {
      if (after.sequence > 0) {
        yield { kind: "restart", attempt };
      }
      after = { attempt, sequence: 0 };
    }
    for (const piece of pieces) {
      yield { kind: "piece", piece: { ...piece, endpoint, attempt, form } };
      after = { attempt, sequence: piece.sequence };
    }
    if (more) {
      continue;
    }
    if (isFinal(task.status)) {
      return task;
    }
    if (wakeups.isClosed) {
      throw shuttingDown();
    }
    await changed;
  }
  return undefined;
}
