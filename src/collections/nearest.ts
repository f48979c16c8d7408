/** The edit distance of names, for errors that propose the name that was meant. */

/** Names longer than this are compared with nothing: they are no slips of the hand. */
const MAX_COMPARED_CHARACTERS = 64;

/**
 * The known name that needs the fewest insertions, deletions, replacements and swaps of
 * neighbours (optimal string alignment); undefined if none is close.
 *
 * @param maxSteps of these. Default: a third of the characters, and one in any case.
 */
export function nearest(
  name: string,
  known: Iterable<string>,
  maxSteps = Math.max(1, Math.floor(name.length / 3)),
): string | undefined {
  if (name.length > MAX_COMPARED_CHARACTERS) {
    return undefined;
  }
  const written = plain(name);
  let found: string | undefined;
  let least = maxSteps + 1;
  for (const candidate of known) {
    const steps = distance(written, plain(candidate));
    if (steps < least) {
      least = steps;
      found = candidate;
    }
  }
  return found;
}

/**
 * The end of an error about an unknown name: the nearest one, within `maxSteps` as `nearest` has
 * them, or all if there are few.
 */
export function proposal(name: string, known: Iterable<string>, maxSteps?: number): string {
  const names = [...known];
  const meant = nearest(name, names, maxSteps);
  if (meant !== undefined) {
    return `; did you mean ${meant}?`;
  }
  return names.length > 0 && names.length <= MAX_LISTED_NAMES
    ? `; known are ${names.join(", ")}`
    : "";
}

/** How many names an error lists. */
const MAX_LISTED_NAMES = 12;

/** `taskId`, `task-id` and `TASK_ID` are one name. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}

function distance(one: string, other: string): number {
  let earlier: number[] = [];
  let before = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const replaced = (before[column - 1] ?? 0) + (one[row - 1] === other[column - 1] ? 0 : 1);
      const removed = (before[column] ?? 0) + 1;
      const inserted = (current[column - 1] ?? 0) + 1;
      const isSwap =
        row > 1 &&
        column > 1 &&
        one[row - 1] === other[column - 2] &&
        one[row - 2] === other[column - 1];
      const swapped = isSwap ? (earlier[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, removed, inserted, swapped));
    }
    earlier = before;
    before = current;
  }
  return before[other.length] ?? 0;
}
