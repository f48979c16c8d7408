import { describe, expect, it } from "vitest";
import { duration, isDueLater } from "../../src/console/app/ui/duration.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe("a duration", () => {
  it.each([
    [0, "0 ms"],
    [-5, "0 ms"],
    [340, "340 ms"],
    [SECOND, "1 s"],
    [2_400, "2.4 s"],
    [59.6 * SECOND, "1 min"],
    [200 * SECOND, "3 min 20 s"],
    [HOUR - 100, "1 h"],
    [2 * HOUR + 5 * MINUTE, "2 h 5 min"],
    [24 * HOUR - SECOND, "1 d"],
    [76 * HOUR + 40 * MINUTE, "3 d 5 h"],
  ])("of %d ms is said in two units at most: %s", (ms, said) => {
    expect(duration(ms)).toBe(said);
  });
});

it("what is due within five seconds, or should have been, has no time to tell", () => {
  const nowMs = Date.parse("2026-11-29T12:00:00Z");
  expect(isDueLater("2026-11-29T12:00:06Z", nowMs)).toBe(true);
  expect(isDueLater("2026-11-29T12:00:04Z", nowMs)).toBe(false);
  expect(isDueLater("2026-11-29T11:59:00Z", nowMs)).toBe(false);
});
