/**
 * The rows of a log: equal lines that follow each other are one row with a count, until somebody
 * unfolds them. A log that grows while it is looked at keeps what is unfolded.
 */
import { type RunOf, runsOf } from "../api/runs.ts";

/** A line of a log. */
export interface Numbered {
  /** Its number in the log, which grows from line to line. */
  readonly sequence?: string | number;
}

export interface LogRow<T> {
  /** The lines that the row stands for; the newest is the one that it shows. */
  readonly lines: RunOf<T>;
  /** How many equal lines it stands for or, where they are unfolded, leads. */
  readonly count: number;
  /** Whether it is a line of a run that is unfolded. */
  readonly isUnfolded: boolean;
}

/** The rows of lines. `unfolded`: numbers of lines whose runs are unfolded. */
export function rowsOf<T extends Numbered>(
  lines: readonly T[],
  isRepeat: (line: T, before: T) => boolean,
  unfolded: ReadonlySet<number>,
): readonly LogRow<T>[] {
  return runsOf(lines, isRepeat).flatMap((run): LogRow<T> | readonly LogRow<T>[] => {
    const isUnfolded = run.length > 1 && run.some((line) => unfolded.has(numberOf(line)));
    return isUnfolded
      ? run.map((line, index) => ({
          lines: [line],
          count: index === 0 ? run.length : 1,
          isUnfolded,
        }))
      : { lines: run, count: run.length, isUnfolded };
  });
}

/** The number of a line. */
export const numberOf = ({ sequence }: Numbered): number => Number(sequence);
