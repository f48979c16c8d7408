/** Durations as options take them. */

/**
 * A duration: milliseconds, or a number with a unit (`ms`, `s`, `m`, `h`, `d`),
 * such as `"30s"`.
 */
export type TimeSpan = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const MILLISECONDS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Converts a duration to milliseconds. Throws a `TypeError` that names the
 * option when it is invalid.
 */
export function millisecondsOf(option: string, span: TimeSpan): number {
  const [, amount = "", unit = "ms"] =
    /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(typeof span === "number" ? `${span}ms` : span) ?? [];
  const milliseconds = Number(amount) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
  if (amount === "" || !Number.isFinite(milliseconds)) {
    throw new TypeError(
      `${option} must be a number of milliseconds or a text such as "30s", not ${JSON.stringify(span)}`,
    );
  }
  return milliseconds;
}
