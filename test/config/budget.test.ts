import { availableParallelism, totalmem } from "node:os";
import { describe, expect, it } from "vitest";
import { budgetLimits, readStartConfig } from "../../src/config/start.ts";

const GIBIBYTE = 1024 ** 3;

const UNSET = {
  maxWorkers: undefined,
  maxMemory: undefined,
  maxWorkersPerOrganization: undefined,
  maxMemoryPerOrganization: undefined,
};

describe("the budget of a node", () => {
  it("is made from the machine, and leaves something for the node and for other organizations", () => {
    expect(budgetLimits(UNSET, { cores: 2, memoryBytes: 8 * GIBIBYTE })).toEqual({
      node: { workers: 128, memoryBytes: 6 * GIBIBYTE },
      organization: { workers: 96, memoryBytes: 4.5 * GIBIBYTE },
    });
  });

  it("is as the operator sets it, and an organization's follows", () => {
    const machine = { cores: 2, memoryBytes: 8 * GIBIBYTE };
    expect(budgetLimits({ ...UNSET, maxWorkers: 2, maxMemory: 2 * GIBIBYTE }, machine)).toEqual({
      node: { workers: 2, memoryBytes: 2 * GIBIBYTE },
      organization: { workers: 2, memoryBytes: 1.5 * GIBIBYTE },
    });
    const own = { maxWorkersPerOrganization: 7, maxMemoryPerOrganization: GIBIBYTE };
    expect(budgetLimits({ ...UNSET, ...own }, machine).organization).toEqual({
      workers: 7,
      memoryBytes: GIBIBYTE,
    });
  });

  it("is never made from more memory than the machine has", () => {
    const { node } = readStartConfig({}, {}).config.budget;
    expect(node.workers).toBe(64 * availableParallelism());
    expect(node.memoryBytes).toBeLessThanOrEqual(totalmem() * 0.75);
    expect(node.memoryBytes).toBeGreaterThan(0);
  });

  it("reads its flags and variables", () => {
    const env = { TESSERA_MAX_WORKERS_PER_ORGANIZATION: "3" };
    const { budget } = readStartConfig({ maxWorkers: "9", maxMemory: "1GiB" }, env).config;
    expect(budget).toEqual({
      node: { workers: 9, memoryBytes: GIBIBYTE },
      organization: { workers: 3, memoryBytes: 0.75 * GIBIBYTE },
    });
  });
});
