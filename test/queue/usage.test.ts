import { expect, it } from "vitest";
import { GpuTime } from "../../src/pool/gpus/gpu-time.ts";
import { UnitNames, UsageMeter } from "../../src/queue/attempts.ts";

function names() {
  const said: object[] = [];
  const log = { debug() {}, info() {}, error() {}, warn: (facts: object) => said.push(facts) };
  return { said, names: new UnitNames(log) };
}

it("adds up what a function reports, and tells nothing of a unit where it reported none", () => {
  const meter = new UsageMeter({}, names().names);
  meter.report({ prompt_tokens: 2, pages: 0.5 });
  meter.report({ prompt_tokens: 3 });
  expect(meter.end()).toEqual({ gpuMs: 0, units: { prompt_tokens: 5, pages: 0.5 } });
  expect(new UsageMeter({}, names().names).end()).toEqual({ gpuMs: 0 });
});

it("leaves out what no honest worker reports", () => {
  const meter = new UsageMeter({}, names().names);
  const amounts = { minus: -1, nan: Number.NaN, infinite: Number.POSITIVE_INFINITY, much: 2e12 };
  meter.report({ ...amounts, run_seconds: 1, "a b": 1, "": 1, [`a${"b".repeat(64)}`]: 1 });
  expect(meter.end()).toEqual({ gpuMs: 0 });
});

it("bounds the units of a call, their sums, and the units of a deployment", () => {
  const { said, names: all } = names();
  const many = (from: number, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`unit_${from + at}`, 1]));
  const first = new UsageMeter({}, all);
  first.report(many(0, 16));
  first.report({ another: 1, unit_0: 1e12 });
  const { units = {} } = first.end();
  expect(Object.keys(units)).toHaveLength(16);
  expect(units.unit_0).toBe(1e12);
  const second = new UsageMeter({}, all);
  second.report(many(16, 16));
  expect(Object.keys(second.end().units ?? {})).toHaveLength(16);
  expect(said).toEqual([]);
  const third = new UsageMeter({}, all);
  third.report({ ...many(32, 4), unit_3: 7 });
  expect(third.end()).toEqual({ gpuMs: 0, units: { unit_3: 7 } });
  expect(said).toEqual([{ unit: "unit_32" }]);
});

it("measures how long the GPUs of the worker were had", () => {
  let nowMs = 0;
  const gpuTime = new GpuTime(1, () => nowMs);
  const meter = new UsageMeter({ gpuTime }, names().names);
  nowMs = 250;
  expect(meter.end()).toEqual({ gpuMs: 250 });
});
