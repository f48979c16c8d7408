/** Days of UTC, by their number since 1970: what usage is kept by. */

const DAY_MS = 86_400_000;

/** How long usage is kept: 13 months, so that a month can be compared with that of the year before. */
export const KEPT_DAYS = 400;

/** The day that a time is in. */
export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / DAY_MS);
}

/** When a day begins, in milliseconds since 1970. */
export function startOfDay(day: number): number {
  return day * DAY_MS;
}

/** The days of the day, or the month, that a time is in; `toDay` is the first one after them. */
export function periodOf(
  period: "day" | "month",
  timeMs: number,
): { readonly fromDay: number; readonly toDay: number } {
  if (period === "day") {
    return { fromDay: dayOf(timeMs), toDay: dayOf(timeMs) + 1 };
  }
  const date = new Date(timeMs);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { fromDay: dayOf(Date.UTC(year, month)), toDay: dayOf(Date.UTC(year, month + 1)) };
}

/** SQL: the day of a time, which is an expression in milliseconds since 1970. */
export function dayOfSql(timeMs: string): string {
  return `(${timeMs} / ${DAY_MS})`;
}
