/** Durations: parses and formats them. */

/** A duration: a number of milliseconds, or a string with a unit such as `"30s"` or `"1.5h"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** A duration in milliseconds, rounded; undefined for an invalid or negative one. */
export function parseDuration(duration: unknown): number | undefined {
  if (typeof duration === "number") {
    return Number.isFinite(duration) && duration >= 0 ? Math.round(duration) : undefined;
  }
  const match = typeof duration === "string" ? PATTERN.exec(duration) : null;
  if (match === null) {
    return undefined;
  }
  const [, amount, unit] = match;
  return Math.round(Number(amount) * MILLISECONDS[unit as keyof typeof MILLISECONDS]);
}

/** The shortest spelling of a duration, for messages: `1h`, `90s`, `20ms`. */
export function formatDuration(milliseconds: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (milliseconds >= MILLISECONDS[unit] && milliseconds % MILLISECONDS[unit] === 0) {
      return `${milliseconds / MILLISECONDS[unit]}${unit}`;
    }
  }
  return `${milliseconds}ms`;
}
