/** The rows of a log, with what is unfolded of them. */
import { useMemo, useState } from "react";
import { lastOf } from "../api/runs.ts";
import { type LogRow, type Numbered, numberOf, rowsOf } from "./log-rows.ts";

/** The rows of lines, and what folds or unfolds one. `isRepeat` is to be the same at each call, or the rows are made anew. */
export function useLogRows<T extends Numbered>(
  lines: readonly T[],
  isRepeat: (line: T, before: T) => boolean,
) {
  const [unfolded, setUnfolded] = useState<ReadonlySet<number>>(new Set());
  const rows = useMemo(() => rowsOf(lines, isRepeat, unfolded), [lines, isRepeat, unfolded]);
  const toggle = (row: LogRow<T>): void => {
    const at = rows.indexOf(row);
    const last = row.isUnfolded ? rows[at + row.count - 1] : row;
    const [from, to] = [numberOf(row.lines[0]), numberOf(lastOf((last ?? row).lines))];
    const others = [...unfolded].filter((number) => number < from || number > to);
    // Both ends: a log that is long loses its oldest lines, and gets new ones.
    setUnfolded(new Set(row.isUnfolded ? others : [...others, from, to]));
  };
  return [rows, toggle] as const;
}
