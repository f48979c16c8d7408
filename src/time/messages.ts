/**
 * Times in messages of the API. What was measured or computed has fractions of a millisecond,
 * which nanoseconds in doubles cannot carry (`420757439.0000002` cannot be encoded): every
 * duration and timestamp of a message is made here, rounded to whole milliseconds.
 */
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";

export function durationFromMs(ms: number): Duration {
  const whole = Math.round(ms);
  const seconds = Math.trunc(whole / 1000);
  // Not -0, which JSON and binary would write in different ways.
  const nanos = (whole - seconds * 1000) * 1_000_000 || 0;
  return { $typeName: "google.protobuf.Duration", seconds: BigInt(seconds), nanos };
}

/** @param ms since 1970 */
export function timestampFromMs(ms: number): Timestamp {
  const whole = Math.round(ms);
  const seconds = Math.floor(whole / 1000);
  const nanos = (whole - seconds * 1000) * 1_000_000;
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos };
}
