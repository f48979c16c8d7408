/**
 * The times of a schedule: a cron expression of five fields in a zone of the IANA database, read by
 * croner. Where clocks are set forward, a time of day that does not exist is the moment of the
 * change; where they are set back, a time of day that comes twice is the first one, and an
 * expression with every hour has both.
 */
import { Cron } from "croner";

/** Characters of a cron expression. */
const MAX_CRON_CHARACTERS = 100;

/** What is wrong with an expression and a zone, by field; empty for those that have times. */
export function faultsOfTimes(
  cron: string,
  timeZone: string,
  nowMs: number,
): { readonly cron?: string; readonly time_zone?: string } {
  if (!isZone(timeZone)) {
    return {
      time_zone: "must be a zone of the IANA database, such as Europe/Amsterdam, or UTC",
    };
  }
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 || cron.length > MAX_CRON_CHARACTERS) {
    return {
      cron: "must have five fields: minute, hour, day of the month, month, day of the week",
    };
  }
  try {
    return nextTime({ cron, timeZone }, nowMs) === undefined
      ? { cron: "never comes: no date has all that it asks for" }
      : {};
  } catch (err) {
    const message = err instanceof Error ? err.message : String(err);
    return { cron: `cannot be read: ${message.replace(/^CronPattern: /, "")}` };
  }
}

/** When something happens, which `faultsOfTimes` has found good. */
interface Times {
  readonly cron: string;
  readonly timeZone: string;
}

/** The first time after this one; undefined where none comes. */
export function nextTime({ cron, timeZone }: Times, afterMs: number): number | undefined {
  return parsed(cron, timeZone).nextRun(new Date(afterMs))?.getTime();
}

/** The next times after this one, at most `count`. */
export function nextTimes(times: Times, afterMs: number, count: number): number[] {
  const found: number[] = [];
  let next = nextTime(times, afterMs);
  while (next !== undefined && found.length < count) {
    found.push(next);
    next = nextTime(times, next);
  }
  return found;
}

/** The last time until this one, itself included; undefined where none has come. */
export function lastTime({ cron, timeZone }: Times, untilMs: number): number | undefined {
  return parsed(cron, timeZone)
    .previousRuns(1, new Date(untilMs + 1))[0]
    ?.getTime();
}

function parsed(cron: string, timeZone: string): Cron {
  return new Cron(cron, { timezone: timeZone, mode: "5-part", paused: true });
}

function isZone(timeZone: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(timeZone)) {
    return false;
  }
  try {
    return new Intl.DateTimeFormat("en", { timeZone }) !== undefined;
  } catch {
    return false;
  }
}
