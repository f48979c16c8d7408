/** One row for several things that fail for the same reason. */

/** A problem that may be one row with others of the same reason. */
export interface Groupable {
  /** Identify it; a group has the keys of all its parts. */
  readonly keys: readonly string[];
  readonly name: string;
  readonly isBad: boolean;
  readonly at?: string | undefined;
  /** Where it is wrong, such as `predict: no readings`. */
  readonly cause: string;
  /** Why, without where it was: equal for what belongs together. Empty: it has a row of its own. */
  readonly reason: string;
  /** What kind of thing it is about: only things of one kind belong together. */
  readonly kind: string;
  /** How many things it is about, such as failed tasks. */
  readonly count: number;
}

/** Rows in the order of their first parts; `together` says what the others of a group are not alike in. */
export function grouped<Seen extends Groupable>(
  seen: readonly Seen[],
  together: (first: Seen, count: number) => Seen,
): readonly Seen[] {
  const groups = Map.groupBy(seen, ({ kind, reason, keys }) =>
    reason === "" ? keys.join() : `${kind} ${reason}`,
  );
  return [...groups.values()].flatMap((parts) => {
    const [first] = parts;
    if (first === undefined || parts.length === 1) {
      return parts;
    }
    const count = parts.reduce((sum, one) => sum + one.count, 0);
    return {
      ...together(first, count),
      count,
      keys: parts.flatMap(({ keys }) => keys),
      name: namesText(parts.map(({ name }) => name)),
      isBad: parts.some(({ isBad }) => isBad),
      cause: parts.every(({ cause }) => cause === first.cause) ? first.cause : first.reason,
      at: parts
        .map(({ at }) => at)
        .reduce((one, other) => ((one ?? "") > (other ?? "") ? one : other)),
    };
  });
}

/** Names that are shown before `and 3 more`, which is never `1 more`. */
const MAX_NAMES = 2;

/** Each once, such as `ocr, tape and 3 more`. */
function namesText(all: readonly string[]): string {
  const names = [...new Set(all)];
  const left = names.length - MAX_NAMES;
  return left > 1 ? `${names.slice(0, MAX_NAMES).join(", ")} and ${left} more` : names.join(", ");
}
