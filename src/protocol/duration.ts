/** Durations and rates: parses and formats them. */
import type { RateManifest } from "./manifest.ts";

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

/** A rate: a number of events, and the time in which there may be no more of them. */
export type RateText = `${number}/${"s" | "min" | "h" | "d"}`;

/** The times of rates by their units. */
const PERIODS_MS = { s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A rate such as `10/min`; undefined for anything else, and for a count beyond `maxCount`. */
export function parseRate(rate: unknown, maxCount: number): RateManifest | undefined {
  const match = typeof rate === "string" ? /^([1-9]\d{0,8})\/(s|min|h|d)$/.exec(rate) : null;
  if (match === null || Number(match[1]) > maxCount) {
    return undefined;
  }
  return { count: Number(match[1]), periodMs: PERIODS_MS[match[2] as keyof typeof PERIODS_MS] };
}

/** The spelling of a rate: `10/min`. */
export function formatRate({ count, periodMs }: RateManifest): string {
  const units = Object.keys(PERIODS_MS) as (keyof typeof PERIODS_MS)[];
  const unit = units.find((one) => PERIODS_MS[one] === periodMs);
  return `${count}/${unit ?? formatDuration(periodMs)}`;
}
