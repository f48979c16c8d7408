import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

const SECOND_MS = 1_000;

/** More than the seconds that the tasks of a moment were made in, and expire in. */
const MAX_SECONDS = 64;

/** `2026-03-01T12:34:56.` by seconds since 1970. */
const seconds = new Map<number, string>();

/** What follows that, by milliseconds. */
const ENDS = Array.from({ length: SECOND_MS }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

/** RFC 3339, in UTC and with milliseconds; null for no time. */
export function time(timestamp: Timestamp | undefined): string | null {
  return timestamp ? utc(timestampMs(timestamp)) : null;
}

/**
 * What `Date.toISOString` writes, at a fraction of its cost under load, where
 * nearly all times are of a second that was written before.
 */
export function utc(timeMs: number): string {
  const second = Math.floor(timeMs / SECOND_MS);
  let text = seconds.get(second);
  if (text === undefined) {
    text = new Date(second * SECOND_MS).toISOString().slice(0, -"000Z".length);
    if (seconds.size >= MAX_SECONDS) {
      seconds.clear();
    }
    seconds.set(second, text);
  }
  return `${text}${ENDS[timeMs - second * SECOND_MS]}`;
}
