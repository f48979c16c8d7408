import { expect, it } from "vitest";
import { MAX_LISTED_WORKERS, WorkerList } from "../../src/deployments/worker-list.ts";
import type { Worker } from "../../src/pool/worker.ts";

const worker = (id: string): Worker =>
  ({ id, revision: 2, machine: undefined, busyness: 1, loaded: true }) as unknown as Worker;

it("describes the oldest workers, and counts the others", () => {
  let nowMs = 0;
  const list = new WorkerList(() => nowMs);
  const workers = Array.from({ length: MAX_LISTED_WORKERS + 3 }, (_, index) => worker(`${index}`));
  for (const one of workers) {
    nowMs += 1;
    list.began(one);
  }
  nowMs += 1;
  list.began(workers[0] as Worker);
  const { workers: told, omitted } = list.describe(workers.toReversed());
  expect([told.length, omitted]).toEqual([MAX_LISTED_WORKERS, 3]);
  expect(told[0]).toEqual({
    workerId: "0",
    revision: 2,
    machine: undefined,
    startedAtMs: 1,
    calls: 1,
    ready: true,
  });
});

it("tells which machines of launchers have joined, without those that leave or are drained", () => {
  const of = (launched: string, about: Partial<Worker> = {}): Worker =>
    ({
      ...{ ...worker(launched), stopping: false, isDraining: false, machine: { launched } },
      ...about,
    }) as unknown as Worker;
  const workers = [
    ...[of("a", { loaded: false }), of("a"), of("b", { loaded: false })],
    ...[of("leaving", { stopping: true }), of("drained", { isDraining: true, loaded: false })],
    worker("of the node"),
  ];
  expect(new WorkerList(() => 0).describe(workers).launched).toEqual([
    { machine: "a", ready: true },
    { machine: "b", ready: false },
  ]);
});

it("tells which GPUs of the node a worker has", () => {
  const list = new WorkerList(() => 0);
  const gpu = {
    ...{ index: 1, uuid: "GPU-1", name: "NVIDIA L4", minor: 1 },
    ...{ memoryBytes: 24, usedBytes: 0 },
  };
  const one = list.began(worker("one"), [gpu]);
  expect(list.describe([one, list.began(worker("two"))]).workers.map(({ gpus }) => gpus)).toEqual([
    ["GPU 1 (NVIDIA L4)"],
    undefined,
  ]);
});
