/** Which revisions are compared, as the address says. */

export interface ComparisonSearch {
  readonly revision?: number;
  readonly base?: number;
}

/** Leaves out what is no number of a revision. */
export function readComparison({ revision, base }: Record<string, unknown>): ComparisonSearch {
  const [is, was] = [Number(revision), Number(base)];
  return Number.isSafeInteger(is) && is > 0 && Number.isSafeInteger(was) && was > 0
    ? { revision: is, base: was }
    : {};
}
