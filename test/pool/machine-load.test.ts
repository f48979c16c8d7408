import { expect, it } from "vitest";
import { MachineMeter, ticksOf } from "../../src/pool/machine-load.ts";

it("tells processors and memory of this machine within what it has", () => {
  const meter = new MachineMeter();
  for (const load of [meter.look(), meter.look()]) {
    expect(load.processors).toBeGreaterThan(0);
    expect(load.busyProcessors).toBeGreaterThanOrEqual(0);
    expect(load.memoryBytes).toBeGreaterThan(2 ** 20);
    expect(load.usedMemoryBytes).toBeLessThanOrEqual(load.memoryBytes);
  }
});

it("counts what waits for a disk as idle, and the time of guests once", () => {
  const line = "cpu  100 20 30 800 50 1 2 3 60 7";
  expect(ticksOf(`${line}\ncpu0 1 2 3\n`)).toEqual({ busy: 156, all: 1_006 });
});
