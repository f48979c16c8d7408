import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { parseDuration } from "../../src/cli/durations.ts";
import { parseMoment, toDuration } from "../../src/cli/times.ts";

const NOW_MS = Date.parse("2027-01-01T12:00:00Z");

function moment(text: string): string {
  return timestampDate(parseMoment("--expires", text, NOW_MS)).toISOString();
}

describe("a moment", () => {
  it.each([
    ["90d", "2027-04-01T12:00:00.000Z"],
    ["12h", "2027-01-02T00:00:00.000Z"],
    ["2w", "2027-01-15T12:00:00.000Z"],
    ["2027-01-31", "2027-01-31T00:00:00.000Z"],
    ["2027-01-31T08:30Z", "2027-01-31T08:30:00.000Z"],
    ["2027-01-31 08:30:15+01:00", "2027-01-31T07:30:15.000Z"],
  ])("is read: %s", (text, expected) => {
    expect(moment(text)).toBe(expected);
  });

  it.each(["", "soon", "90", "90x", "-1d", "2027-02-30", "2027-13-01", "31.01.2027", "1e3d"])(
    "is refused with examples: %j",
    (text) => {
      expect(() => moment(text)).toThrow(/^--expires ".*" is not a (?:time|duration): .*90d/);
    },
  );

  it("is refused without a zone, which would mean another time elsewhere", () => {
    expect(() => moment("2027-01-31T08:30")).toThrow(/is not a time/);
  });
});

describe("a duration", () => {
  it("is read, to the millisecond", () => {
    expect(parseDuration("--grace", "45m")).toBe(2_700_000);
    expect(toDuration(1_500)).toEqual({ seconds: 1n, nanos: 500_000_000 });
  });
});
