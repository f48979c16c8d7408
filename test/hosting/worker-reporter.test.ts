import { expect, it } from "vitest";
import { WorkerReporter, type WorkerReporterOptions } from "../../src/hosting/worker-reporter.ts";
import type { WorkerRecord } from "../../src/storage/hosting/nodes.ts";

type Told = ReturnType<WorkerReporterOptions["workers"]>;

const KEY = { organizationId: "acme-id", deploymentId: "digits-id" };
const WORKER: WorkerRecord = {
  workerId: "a/1",
  revision: 1,
  machine: undefined,
  startedAtMs: 5,
  calls: 0,
  ready: true,
};

function reporter() {
  const written: (readonly string[])[] = [];
  const state = { told: [] as Told, isReported: true };
  const made = new WorkerReporter({
    hosting: {
      reportWorkers: async ({ reports }) => {
        written.push(reports.map(({ deploymentId }) => deploymentId));
        return state.isReported ? reports.map(({ deploymentId }) => deploymentId) : [];
      },
    },
    nodeId: "a",
    log: { debug() {}, info() {}, warn() {}, error() {} },
    workers: () => state.told,
  });
  return { made, written, state };
}

it("writes what has changed, and nothing for deployments that never had a worker", async () => {
  const { made, written, state } = reporter();
  await using _ = made;
  state.told = [
    { ...KEY, workers: [WORKER], omitted: 0 },
    { ...KEY, deploymentId: "idle-id", workers: [], omitted: 0 },
  ];
  await made.report();
  await made.report();
  expect(written).toEqual([["digits-id"]]);
  state.told = [{ ...KEY, workers: [{ ...WORKER, calls: 1 }], omitted: 0 }];
  await made.report();
  state.told = [{ ...KEY, workers: [], omitted: 0 }];
  await made.report();
  await made.report();
  expect(written).toEqual([["digits-id"], ["digits-id"], ["digits-id"]]);
});

it("writes again what was not stored, and everything when it has to forget", async () => {
  const { made, written, state } = reporter();
  await using _ = made;
  state.told = [{ ...KEY, workers: [WORKER], omitted: 0 }];
  state.isReported = false;
  await made.report();
  state.isReported = true;
  await made.report();
  expect(written).toHaveLength(2);
  made.forget();
  await made.report();
  expect(written).toHaveLength(3);
});
