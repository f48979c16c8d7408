import { expect, it } from "vitest";
import { unitOf } from "../../src/metrics/unit.ts";

it.each([
  ["load_seconds", "seconds"],
  ["read_bytes_total", "bytes"],
  ["cache_hit_ratio", "ratio"],
  ["tokens_total", ""],
  ["seconds_left", ""],
  ["bytes", "bytes"],
  ["_total", ""],
])("the unit of %s is %j", (name, unit) => {
  expect(unitOf(name)).toBe(unit);
});
