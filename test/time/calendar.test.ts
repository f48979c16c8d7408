import { expect, it } from "vitest";
import { isOnCalendar } from "../../src/time/calendar.ts";

it.each([
  ["2026-11-30T00:00:00Z", true],
  ["2026-11-31T00:00:00Z", false],
  ["2024-02-29t12:00:00.5+02:00", true],
  ["2026-02-29T12:00:00+02:00", false],
  ["2026-01-01T24:00:00Z", false],
  ["2026-13-01T00:00:00Z", false],
  ["0001-01-01T00:00:00Z", true],
  ["soon", false],
])("%s is on the calendar: %s", (text, there) => {
  expect(isOnCalendar(text)).toBe(there);
});
