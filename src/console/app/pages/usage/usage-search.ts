/** What the page of usage shows, as its address says. */
import { USAGE_KEYS, type UsageBy } from "../../api/usage-keys.ts";

/** Days that can be chosen. */
export const DAYS = [7, 30, 90, 365] as const;

export interface UsageSearch {
  readonly by?: UsageBy;
  /** What the chart shows: something that the platform counts, or a unit. */
  readonly of?: string;
  readonly days?: (typeof DAYS)[number];
}

export function readUsageSearch({ by, of, days }: Record<string, unknown>): UsageSearch {
  const [key, asked] = [
    USAGE_KEYS.find((one) => one === by),
    DAYS.find((one) => one === Number(days)),
  ];
  return {
    ...(key !== undefined && { by: key }),
    ...(typeof of === "string" && of !== "" && { of }),
    ...(asked !== undefined && { days: asked }),
  };
}
