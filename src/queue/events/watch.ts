/**
 * The event stream of one task: its stored events and the pieces of its result, then new ones as
 * they come.
 */
import { shuttingDown } from "../../errors.ts";
import type { PiecePosition } from "../../storage/pieces.ts";
import type { Storage, TaskKey } from "../../storage/storage.ts";
import { eventLog, type TaskEvent, type TaskHistory } from "../../tasks/event.ts";
import { isFinal, type Task } from "../../tasks/task.ts";
import { PIECES_PAGE_BYTES, type StreamedPiece } from "../pieces/reader.ts";
import { type Changes, Wakeups } from "../waits/changes.ts";

/** Stored events read at once: bounds what a watcher holds in memory. */
const MAX_EVENTS_PER_READ = 500;

/** Where a watcher is: after this event, and after this piece. */
export interface WatchPosition {
  readonly sequence: number;
  readonly piece: PiecePosition;
}

export type WatchedEvent =
  | { readonly kind: "event"; readonly event: TaskEvent }
  /** `sequence` is that of the event before it. */
  | { readonly kind: "piece"; readonly piece: StreamedPiece; readonly sequence: number };

interface WatchEventsOptions {
  readonly storage: Storage;
  readonly changes: Changes;
  readonly key: TaskKey;
  readonly after: WatchPosition;
  /** Ends the watch when the caller has gone. */
  readonly signal: AbortSignal | undefined;
}

/**
 * Streams what comes after a position, until the task has ended or was deleted. Changes only say
 * when to read: everything comes from the storage, so a watcher misses nothing and can resume
 * anywhere. The pieces of an attempt come after its beginning and before its end.
 */
export async function* watchEvents(options: WatchEventsOptions): AsyncGenerator<WatchedEvent> {
  const { storage, changes, key, signal } = options;
  using wakeups = new Wakeups(changes, key.taskId, signal);
  let { sequence, piece } = options.after;
  while (!signal?.aborted) {
    const changed = wakeups.next();
    const asked = { ...key, afterSequence: sequence, limit: MAX_EVENTS_PER_READ };
    const history = await storage.getHistory(asked);
    if (history === undefined) {
      return;
    }
    const { events, end, more } = next(history, sequence);
    for (const event of events) {
      yield { kind: "event", event };
      sequence = event.sequence;
    }
    if (more) {
      continue;
    }
    piece = yield* newPieces(options, history, { sequence, piece });
    if (end) {
      yield { kind: "event", event: end };
    }
    if (isFinal(history.task.status)) {
      return;
    }
    if (wakeups.isClosed) {
      throw shuttingDown();
    }
    await changed;
  }
}

/** The next events. With more to read, those after the last one read wait; `end` is the task's. */
function next(history: TaskHistory, after: number) {
  const { task, stored } = history;
  const more = stored.length === MAX_EVENTS_PER_READ;
  const until = more ? (stored.at(-1)?.sequence ?? after) : Number.POSITIVE_INFINITY;
  const events = eventLog(history, after).filter(({ sequence }) => sequence <= until);
  const end = !more && isFinal(task.status) ? events.pop() : undefined;
  return { events, end, more };
}

/** Streams the pieces of the attempt that a history shows; returns where they end. */
async function* newPieces(
  { storage, key, signal }: WatchEventsOptions,
  { task, lastPiece }: Pick<TaskHistory, "lastPiece"> & { readonly task: Task },
  from: WatchPosition,
): AsyncGenerator<WatchedEvent, PiecePosition> {
  const { attempt, endpoint } = task;
  let after = from.piece.attempt === attempt ? from.piece : { attempt, sequence: 0 };
  while (after.sequence < lastPiece && !signal?.aborted) {
    const page = await storage.readPieces({ ...key, after, maxBytes: PIECES_PAGE_BYTES });
    if (page?.task.attempt !== attempt || page.pieces.length === 0) {
      // The next attempt has begun meanwhile: its beginning is an event.
      return after;
    }
    const { form = "json" } = page;
    for (const piece of page.pieces) {
      const { sequence } = from;
      yield { kind: "piece", piece: { ...piece, endpoint, attempt, form }, sequence };
      after = { attempt, sequence: piece.sequence };
    }
  }
  return after;
}
