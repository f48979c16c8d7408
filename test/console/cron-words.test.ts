/** Cron expressions in words, each checked against the times that the platform reads in it. */
import { describe, expect, it } from "vitest";
import { wordsOfCron } from "../../src/console/app/pages/deployments/cron-words.ts";
import { nextTimes } from "../../src/queue/schedules/cron.ts";

const WORDS: readonly (readonly [cron: string, words: string, next: readonly string[]])[] = [
  ["* * * * *", "Every minute", ["00:01", "00:02"]],
  ["*/10 * * * *", "Every 10 minutes", ["00:10", "00:20"]],
  ["*/15 9-17 * * 1-5", "Every 15 minutes from 09:00 to 17:45, every weekday", ["09:00", "09:15"]],
  ["0 * * * *", "Every hour", ["01:00", "02:00"]],
  ["5 */6 * * *", "Every 6 hours, at minute 5", ["00:05", "06:05"]],
  ["30 8-17 * * *", "Every hour from 08:30 to 17:30", ["08:30", "09:30"]],
  ["0 8 * * MON-FRI", "Every weekday at 08:00", ["08:00", "08:00"]],
  ["0 8,20 * * *", "Every day at 08:00 and 20:00", ["08:00", "20:00"]],
  ["0,30 6 * * sat,0", "Every Saturday and Sunday at 06:00 and 06:30", ["06:00", "06:30"]],
  ["0 3 1,15 * ?", "On the 1st and 15th of every month at 03:00", ["03:00", "03:00"]],
  ["30 23 L * *", "On the last day of every month at 23:30", ["23:30", "23:30"]],
  ["0 6 2 1,4,JUL,10 *", "On the 2nd of January, April, July and October at 06:00", ["06:00"]],
  ["0 6 * DEC 7", "Every Sunday in December at 06:00", ["06:00", "06:00"]],
  ["0 6 * 1-3 *", "Every day in January, February and March at 06:00", ["06:00", "06:00"]],
];

describe("cron expressions in words", () => {
  it.each(WORDS)("tell %s as %s", (cron, words, next) => {
    expect(wordsOfCron(cron)).toBe(words);
    const found = nextTimes({ cron, timeZone: "UTC" }, Date.UTC(2026, 0, 1), next.length);
    expect(found.map((time) => new Date(time).toISOString().slice(11, 16))).toEqual(next);
  });

  it.each([
    ["of uneven steps", "*/7 * * * *"],
    ["of days of the month or of the week", "0 0 13 * FRI"],
    ["of the nearest weekday", "0 0 15W * *"],
    ["of the second Monday", "0 0 * * MON#2"],
    ["of many times of a day", "0,20,40 1-4 * * *"],
    ["of many days of a month", "0 8 1-15 * *"],
    ["of many months", "0 8 1 2-12 *"],
    ["of steps in a range", "0 8-18/2 * * *"],
    ["out of bounds", "61 8 * * *"],
    ["of no month", "0 0 1 13 *"],
    ["of four fields", "0 8 * *"],
    ["of six fields", "0 0 8 * * *"],
    ["of nothing", ""],
    ["of words", "every day at eight o'clock"],
  ])("say nothing of one %s", (_, cron) => {
    expect(wordsOfCron(cron)).toBeUndefined();
  });
});
