/** The range of time that charts show, which is in the address. */

/** The ranges with their length in seconds. */
export const RANGES = { "1h": 3_600, "24h": 86_400, "7d": 604_800 } as const;

export type ChartRange = keyof typeof RANGES;

export interface RangeSearch {
  readonly range?: ChartRange;
}

/** Leaves out what is no range. */
export function readRange({ range }: Record<string, unknown>): RangeSearch {
  return typeof range === "string" && range in RANGES ? { range: range as ChartRange } : {};
}
