/** What functions report of what a call used, by names of their own, such as `prompt_tokens`. */

/** Units that one call may report. */
export const MAX_UNITS_PER_CALL = 16;

/** The most of a unit that one call may report: sums of it stay exact. */
export const MAX_UNIT_AMOUNT = 1e12;

export const UNIT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** What the platform itself counts, so that no unit may have the name. */
export const COUNTED_BY_PLATFORM: ReadonlySet<string> = new Set([
  ...["calls", "tasks", "run_seconds", "gpu_seconds", "bytes_in", "bytes_out"],
]);

export interface Units {
  readonly [unit: string]: number;
}

/** Why a unit cannot be counted; undefined: it can. */
export function faultOfUnit(name: string, amount: unknown): string | undefined {
  if (!UNIT_NAME.test(name)) {
    return "a name has a letter, and then up to 63 letters, digits and underscores";
  }
  if (COUNTED_BY_PLATFORM.has(name)) {
    return "the platform itself counts that";
  }
  const isAmount = typeof amount === "number" && amount >= 0 && amount <= MAX_UNIT_AMOUNT;
  return isAmount ? undefined : `an amount is a number from 0 to ${MAX_UNIT_AMOUNT}`;
}
