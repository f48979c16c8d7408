import { expect, it } from "vitest";
import { bytes, count, perMinute, seconds } from "../../src/console/app/ui/quantity.ts";

it.each([
  ["seconds below one", seconds, [0, 0.2, 0.4], ["0 ms", "200 ms", "400 ms"]],
  ["seconds", seconds, [0, 0.5, 1], ["0 s", "0.5 s", "1 s"]],
  ["counts per minute", perMinute(count), [0, 10, 20], ["0/min", "0.6k/min", "1.2k/min"]],
  ["bytes", bytes, [0, 524_288, 1_048_576], ["0 MiB", "0.5 MiB", "1 MiB"]],
])("the ticks of an axis of %s have the unit of the highest", (_, format, ticks, labels) => {
  const highest = Math.max(...ticks);
  expect(ticks.map((tick) => format(tick, highest))).toEqual(labels);
});
