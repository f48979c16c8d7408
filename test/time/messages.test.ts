import { fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { durationFromMs, timestampFromMs } from "../../src/time/messages.ts";

/** Milliseconds as measurements and divisions leave them. */
const FRACTIONS = [1_420.757_439_000_2, 1_403.7 / 7, 0.1 + 0.2, 10_000 / 3, 999.9, 2_000_000.000_1];

describe("times of messages", () => {
  it.each(FRACTIONS)("of %f ms have whole milliseconds, in binary and in JSON", (ms) => {
    const duration = durationFromMs(ms);
    expect(fromBinary(DurationSchema, toBinary(DurationSchema, duration))).toEqual(duration);
    expect(Number.parseFloat(toJson(DurationSchema, duration) as string)).toBe(
      Math.round(ms) / 1_000,
    );
    const timestamp = timestampFromMs(1_800_000_000_000 + ms);
    expect(fromBinary(TimestampSchema, toBinary(TimestampSchema, timestamp))).toEqual(timestamp);
    expect(Date.parse(toJson(TimestampSchema, timestamp) as string)).toBe(
      Math.round(1_800_000_000_000 + ms),
    );
  });

  it("before zero have the sign of their kind", () => {
    expect(durationFromMs(-1_500.4)).toMatchObject({ seconds: -1n, nanos: -500_000_000 });
    expect(durationFromMs(-1_000)).toMatchObject({ seconds: -1n, nanos: 0 });
    expect(Object.is(durationFromMs(-0.2).nanos, 0)).toBe(true);
    expect(timestampFromMs(-1_500)).toMatchObject({ seconds: -2n, nanos: 500_000_000 });
  });
});
