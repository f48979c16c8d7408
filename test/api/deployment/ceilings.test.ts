import { expect, it } from "vitest";
import { settingsWithin } from "../../../src/api/deployment/ceilings.ts";
import type { Ceilings } from "../../../src/deployments/ceilings.ts";
import type { DeploymentRecord } from "../../../src/storage/accounts/organizations.ts";
import { DEFAULT_SETTINGS } from "../../../src/storage/deployment-settings.ts";

const CEILINGS: Ceilings = {
  deployments: 10,
  workers: 4,
  memoryMib: 4_096,
  cpu: 4,
  processes: 8,
  retentionMs: 365 * 86_400_000,
  storageBytes: 1024 ** 3,
};

const serviceOf = (workers?: number) => ({
  name: "s",
  endpoints: [],
  ...(workers !== undefined && { workers }),
});

it.each([
  ["what the service asks for", { workers: 3 }, {}, 3],
  ["one where it asks for one", { workers: 1 }, {}, 1],
  ["the default where it asks for none", {}, {}, DEFAULT_SETTINGS.maxWorkers],
  ["what the operator allows", { workers: 64 }, {}, CEILINGS.workers],
  ["what the request says", { workers: 3 }, { maxWorkers: 2 }, 2],
  ["no less than the least of the request", { workers: 1 }, { minWorkers: 2 }, 2],
])("a new deployment has %s", (_, { workers }: { workers?: number }, requested, expected) => {
  const bounds = { before: undefined, service: serviceOf(workers), ceilings: CEILINGS };
  expect(settingsWithin(requested, bounds).maxWorkers).toBe(expected);
});

it("a deployment that is there keeps its workers, whatever the next revision asks for", () => {
  const settings = { ...DEFAULT_SETTINGS, maxWorkers: 4 };
  const before = { targetRevision: 1, settings } as DeploymentRecord;
  const bounds = { before, service: serviceOf(1), ceilings: CEILINGS };
  expect(settingsWithin({}, bounds)).toEqual({});
});

it.each([
  ["the setting", { processes: 9 }, 0, true],
  ["the code", {}, 9, true],
  ["the code, and the setting goes before it", { processes: 2 }, 9, false],
  ["nobody", {}, 0, false],
])(
  "processes beyond what the operator allows, asked for by %s",
  (_, requested, processes, isRefused) => {
    const service = { ...serviceOf(), processes };
    const deploy = () =>
      settingsWithin(requested, { before: undefined, service, ceilings: CEILINGS });
    if (isRefused) {
      expect(deploy).toThrow(
        /settings.processes would be 9, .* allows 8 \(.*--max-processes-per-worker\)/,
      );
    } else {
      expect(deploy).not.toThrow();
    }
  },
);
