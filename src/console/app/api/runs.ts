/** Runs: items of a list that are alike and follow each other, as one. */

/** At least one item. */
export type RunOf<T> = readonly [T, ...T[]];

/** The runs of a list in its order, in one pass; an item that is like neither neighbour is a run alone. */
export function runsOf<T>(
  items: readonly T[],
  isLike: (item: T, before: T) => boolean,
): readonly RunOf<T>[] {
  const runs: [T, ...T[]][] = [];
  let run: [T, ...T[]] | undefined;
  let before: T | undefined;
  for (const item of items) {
    if (run !== undefined && isLike(item, before as T)) {
      run.push(item);
    } else {
      run = [item];
      runs.push(run);
    }
    before = item;
  }
  return runs;
}

/** The last item of a run. */
export const lastOf = <T>(run: RunOf<T>): T => run.at(-1) ?? run[0];
