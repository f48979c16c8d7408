/** The revision that the open one is compared with, as the address says. Default: the one before it. */
export interface ComparisonSearch {
  readonly base?: number;
}

/** Leaves out what is no number of a revision. */
export function readComparison({ base }: Record<string, unknown>): ComparisonSearch {
  const was = Number(base);
  return Number.isSafeInteger(was) && was > 0 ? { base: was } : {};
}
