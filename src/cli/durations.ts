/** Durations as users type them, and as lists show them. */
import { usageError } from "./failure.ts";

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Parses a whole number with a unit from seconds to weeks, such as `90d`, into milliseconds. */
export function parseDuration(option: string, text: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  if (count === undefined || unitMs === undefined) {
    throw usageError(
      `${option} ${JSON.stringify(text)} is not a duration: give a number with s, m, h, d or w, such as 90d`,
    );
  }
  return Number(count) * unitMs;
}

/** Two digits and a unit, such as `0.48s`, `20s`, `12m`, `3h` or `5d`. */
export function shortTime(ms: number): string {
  if (ms >= 100 * 3_600_000) {
    return `${Math.round(ms / 86_400_000)}d`;
  }
  if (ms >= 100 * 60_000) {
    return `${Math.round(ms / 3_600_000)}h`;
  }
  if (ms >= 100_000) {
    return `${Math.round(ms / 60_000)}m`;
  }
  return `${ms >= 10_000 ? Math.round(ms / 1_000) : Number((ms / 1_000).toPrecision(2))}s`;
}
