/** Parses durations and times that users type. */
import { type Duration, type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { parseDuration } from "./durations.ts";
import { usageError } from "./failure.ts";

/** Converts milliseconds to a protobuf duration. */
export function toDuration(ms: number): Pick<Duration, "seconds" | "nanos"> {
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
}

/**
 * RFC 3339 with optional seconds. A zone is required: without one, both ends
 * might read a different time.
 */
const MOMENT =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)(Z|[+-]\d{2}:\d{2}))?$/i;

/**
 * Parses a time: an offset from now (`90d`), a day (its start in UTC), or day
 * and time with a zone.
 */
export function parseMoment(option: string, text: string, nowMs: number): Timestamp {
  if (/^\d+[a-z]+$/i.test(text)) {
    return timestampFromMs(nowMs + parseDuration(option, text));
  }
  const [, day, time = "00:00", zone = "Z"] = MOMENT.exec(text) ?? [];
  const ms = day === undefined ? Number.NaN : Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(ms) || !isDay(day ?? "")) {
    throw usageError(
      `${option} ${JSON.stringify(text)} is not a time: give a duration such as 90d, a day such as 2027-01-31, or 2027-01-31T08:30Z`,
    );
  }
  return timestampFromMs(ms);
}

/** The same for times that have been: a duration is one before now. */
export function parsePastMoment(option: string, text: string, nowMs: number): Timestamp {
  return /^\d+[a-z]+$/i.test(text)
    ? timestampFromMs(nowMs - parseDuration(option, text))
    : parseMoment(option, text, nowMs);
}

/** Checks that the day exists: JavaScript turns February 30 into March 2. */
function isDay(day: string): boolean {
  const ms = Date.parse(`${day}T00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}
