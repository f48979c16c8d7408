import type { Timestamp } from "@bufbuild/protobuf/wkt";

/** More than the seconds that the tasks of a moment were made in, and expire in. */
const MAX_SECONDS = 64;

/** By themselves: making a BigInt costs more than finding it. */
const seconds = new Map<number, bigint>();

/** A time in milliseconds since 1970 as a message; none for none. */
export function toTimestamp(timeMs: number): Timestamp;
export function toTimestamp(timeMs: number | undefined): Timestamp | undefined;
export function toTimestamp(timeMs: number | undefined): Timestamp | undefined {
  if (timeMs === undefined) {
    return undefined;
  }
  const whole = Math.floor(timeMs / 1000);
  const nanos = Math.round((timeMs - whole * 1000) * 1_000_000);
  return { $typeName: "google.protobuf.Timestamp", seconds: secondsOf(whole), nanos };
}

function secondsOf(whole: number): bigint {
  let found = seconds.get(whole);
  if (found === undefined) {
    found = BigInt(whole);
    if (seconds.size >= MAX_SECONDS) {
      seconds.clear();
    }
    seconds.set(whole, found);
  }
  return found;
}
