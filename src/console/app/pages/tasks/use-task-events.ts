/** Follows the events of a task: its log lines, progress, pieces, and the changes of its state. */
import { useRef, useState } from "react";
import type { TaskEventJson, TaskProgressJson } from "../../../../../gen/tessera/v1/task_pb.js";
import type { StreamOptions } from "../../api/stream.ts";
import { hasEnded } from "../../api/tasks.ts";
import { type StreamState, useStream } from "../../api/use-stream.ts";
import { NO_PIECES, type TaskPieces, withPieces } from "./task-pieces.ts";

/** Lines of an attempt that the page keeps, as the server does: from its beginning... */
const MAX_FIRST_LINES = 200;
/** ...and from its end. */
const MAX_LAST_LINES = 800;

export interface TaskEvents {
  readonly state: StreamState;
  /** Events with a change of state, oldest first. */
  readonly changes: readonly TaskEventJson[];
  /** Events with a log line, oldest first. */
  readonly lines: readonly TaskEventJson[];
  /** The progress that was reported last. */
  readonly progress: TaskProgressJson | undefined;
  /** What a task that streams has given. */
  readonly pieces: TaskPieces;
}

/** Where a stream that broke is taken up again. */
const BEGINNING = { afterSequence: "0", afterAttempt: 0, afterPiece: "0" };

/**
 * Follows the events that `open` streams, until the task has ended, `key` changes or the component
 * goes. Without a key it follows nothing. It calls `onChange` with each change of the state.
 */
export function useTaskEvents(
  key: string | undefined,
  open: (last: typeof BEGINNING, options: StreamOptions) => AsyncIterable<TaskEventJson>,
  onChange: (changes: readonly TaskEventJson[]) => void,
): TaskEvents {
  const [changes, setChanges] = useState<readonly TaskEventJson[]>([]);
  const [lines, setLines] = useState<readonly TaskEventJson[]>([]);
  const [progress, setProgress] = useState<TaskProgressJson>();
  const [pieces, setPieces] = useState(NO_PIECES);
  const arriving = useRef<TaskEventJson[]>([]);
  const last = useRef(BEGINNING);
  const ended = useRef(false);

  const show = (): void => {
    const events = arriving.current;
    arriving.current = [];
    const added = events.filter(({ log }) => log !== undefined);
    if (added.length > 0) {
      setLines((before) => kept([...before, ...added]));
    }
    const given = events.flatMap(({ piece }) => (piece === undefined ? [] : [piece]));
    if (given.length > 0) {
      setPieces((before) => withPieces(before, given));
    }
    setProgress(
      (before) => events.findLast((one) => one.progress !== undefined)?.progress ?? before,
    );
    const changed = events.filter(({ state: to }) => to !== undefined);
    if (changed.length > 0) {
      setChanges((before) => [...before, ...changed]);
      onChange(changed);
    }
  };
  const onEvent = (event: TaskEventJson): void => {
    const { piece } = event;
    last.current = {
      ...last.current,
      afterSequence: String(event.sequence),
      ...(piece && { afterAttempt: piece.attempt ?? 0, afterPiece: String(piece.sequence) }),
    };
    ended.current ||= event.state !== undefined && hasEnded(event.state);
    // However many come, the page changes once a frame.
    if (arriving.current.push(event) === 1) {
      requestAnimationFrame(show);
    }
  };
  const state = useStream(
    key,
    (options) => open(last.current, options),
    onEvent,
    () => ended.current,
  );
  return { state, changes, lines, progress, pieces };
}

/** The beginning and the end of each attempt's lines, however long somebody looks. */
function kept(lines: readonly TaskEventJson[]): readonly TaskEventJson[] {
  if (lines.length <= MAX_FIRST_LINES + MAX_LAST_LINES) {
    return lines;
  }
  const attempts = Map.groupBy(lines, ({ attempt }) => attempt);
  return [...attempts.values()].flatMap((all) =>
    all.length <= MAX_FIRST_LINES + MAX_LAST_LINES
      ? all
      : [...all.slice(0, MAX_FIRST_LINES), ...all.slice(-MAX_LAST_LINES)],
  );
}
