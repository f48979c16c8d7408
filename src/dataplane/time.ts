import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

const MINUTE_MS = 60_000;

/** More than the minutes that the tasks of a moment were made in, and expire in. */
const MAX_MINUTES = 64;

/** `2026-03-01T12:34:` by minutes since 1970. */
const minutes = new Map<number, string>();

/** RFC 3339, in UTC and with milliseconds; null for no time. */
export function time(timestamp: Timestamp | undefined): string | null {
  return timestamp ? utc(timestampMs(timestamp)) : null;
}

/**
 * What `Date.toISOString` writes, at a twentieth of its cost: nearly all times
 * are of a minute that was written before.
 */
export function utc(timeMs: number): string {
  const minute = Math.floor(timeMs / MINUTE_MS);
  let text = minutes.get(minute);
  if (text === undefined) {
    text = new Date(minute * MINUTE_MS).toISOString().slice(0, -"00.000Z".length);
    if (minutes.size >= MAX_MINUTES) {
      minutes.clear();
    }
    minutes.set(minute, text);
  }
  const rest = timeMs - minute * MINUTE_MS;
  const second = Math.floor(rest / 1000);
  const ms = rest - second * 1000;
  const padding = ms < 10 ? "00" : ms < 100 ? "0" : "";
  return `${text}${second < 10 ? "0" : ""}${second}.${padding}${ms}Z`;
}
