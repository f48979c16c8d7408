import { describe, expect, it } from "vitest";
import { faultsOfTimes, lastTime, nextTimes } from "../../../src/queue/schedules/cron.ts";

const NOW_MS = Date.parse("2026-11-28T12:00:00Z");

function times(cron: string, timeZone: string, after: string, count: number): string[] {
  return nextTimes({ cron, timeZone }, Date.parse(after), count).map((ms) =>
    new Date(ms).toISOString().slice(0, 16),
  );
}

describe("the times of a cron expression", () => {
  it("are those of the zone", () => {
    expect(times("0 9 * * MON-FRI", "America/New_York", "2026-11-27T15:00:00Z", 2)).toEqual([
      "2026-11-30T14:00",
      "2026-12-01T14:00",
    ]);
  });

  it.each([
    // Clocks go from 2:00 to 3:00, so 2:30 is not there.
    [
      "Europe/Amsterdam",
      "30 2 * * *",
      "2026-03-28T12:00:00Z",
      "2026-03-29T01:00",
      "2026-03-30T00:30",
    ],
    [
      "America/New_York",
      "30 2 * * *",
      "2026-03-07T12:00:00Z",
      "2026-03-08T07:00",
      "2026-03-09T06:30",
    ],
    // Clocks go back by an hour, so 2:30 and 1:30 come twice.
    [
      "Europe/Amsterdam",
      "30 2 * * *",
      "2026-10-24T12:00:00Z",
      "2026-10-25T00:30",
      "2026-10-26T01:30",
    ],
    [
      "America/New_York",
      "30 1 * * *",
      "2026-10-31T12:00:00Z",
      "2026-11-01T05:30",
      "2026-11-02T06:30",
    ],
  ])("have one of a day on which the clocks of %s change", (zone, cron, after, ...expected) => {
    expect(times(cron, zone, after, 2)).toEqual(expected);
  });

  it.each([
    ["Europe/Amsterdam", "2026-03-28T22:59:00Z", 23],
    ["Europe/Amsterdam", "2026-10-24T21:59:00Z", 25],
    ["America/New_York", "2026-03-08T04:59:00Z", 23],
    ["America/New_York", "2026-11-01T03:59:00Z", 25],
  ])("have each hour of such a day in %s once", (zone, after, hours) => {
    const day = times("0 * * * *", zone, after, hours + 1);
    expect(new Set(day).size).toBe(hours + 1);
    const [first = "", last = ""] = [day[0], day.at(-1)];
    expect(Date.parse(`${last}Z`) - Date.parse(`${first}Z`)).toBe(hours * 3_600_000);
  });

  it("have a last one until now, itself included", () => {
    const hourly = { cron: "0 * * * *", timeZone: "UTC" };
    expect(lastTime(hourly, NOW_MS)).toBe(NOW_MS);
    expect(lastTime(hourly, NOW_MS - 1)).toBe(NOW_MS - 3_600_000);
  });
});

describe("a cron expression is refused", () => {
  it.each([
    ["* * * * * *", "must have five fields"],
    ["@daily", "must have five fields"],
    ["", "must have five fields"],
    [`0${",0".repeat(60)} * * * *`, "must have five fields"],
    ["61 * * * *", "cannot be read: Invalid value for minute: 61"],
    ["* * * * FOO", "cannot be read"],
    ["* * * * \u0000", "cannot be read"],
    ["0 0 30 2 *", "never comes"],
    ["0 0 31 4,6,9,11 *", "never comes"],
  ])("that is %j", (cron, fault) => {
    expect(faultsOfTimes(cron, "UTC", NOW_MS).cron).toContain(fault);
  });

  it.each(["Mars/Base", "+02:00", "", "../etc/passwd", "UTC\u0000", "a".repeat(1_000)])(
    "in the zone %j",
    (zone) => {
      expect(faultsOfTimes("* * * * *", zone, NOW_MS)).toEqual({
        time_zone: expect.stringContaining("IANA"),
      });
    },
  );

  it("but not the 29th of February, which comes", () => {
    expect(faultsOfTimes("0 0 29 2 *", "Europe/Amsterdam", NOW_MS)).toEqual({});
  });
});
