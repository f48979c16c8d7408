import { describe, expect, it } from "vitest";
import { machinesOf } from "../../src/console/app/pages/machines/grouping.ts";

const BOX = { hostname: "box", platform: "linux-x64", version: "0.1.0", labels: { gpu: "h200" } };

describe("the machines of an organization", () => {
  it("are told apart from nodes, and put together from the workers of all deployments", () => {
    const machines = machinesOf([
      { workerId: "3", node: "n1", machine: BOX, deployment: "b", ready: true, calls: 2 },
      { workerId: "4", node: "n2", machine: BOX, deployment: "a", fault: "LOCK_INVALID: no" },
      { workerId: "1", node: "n1", deployment: "a", ready: true, gpus: ["GPU 0"], startedAt: "2" },
      { workerId: "2", node: "n1", deployment: "a", startedAt: "1" },
    ]);
    expect(machines).toEqual([
      {
        name: "n1",
        joined: undefined,
        node: undefined,
        labels: [],
        gpus: ["GPU 0"],
        loads: [{ deployment: "a", workers: 2, ready: 1, calls: 0 }],
        faults: [],
        since: "1",
      },
      {
        name: "box",
        joined: { platform: "linux-x64", version: "0.1.0" },
        node: undefined,
        labels: ["gpu=h200"],
        gpus: [],
        loads: [
          { deployment: "a", workers: 1, ready: 0, calls: 0 },
          { deployment: "b", workers: 1, ready: 1, calls: 2 },
        ],
        faults: ["LOCK_INVALID: no"],
        since: undefined,
      },
    ]);
  });

  it("are none without a worker", () => {
    expect(machinesOf([])).toEqual([]);
  });

  it("of a node have what it says of itself, also where no worker of the organization runs", () => {
    const nodes = [
      { nodeId: "n2", startedAt: "5", facts: { maxWorkers: 8 } },
      { nodeId: "n1", startedAt: "4" },
    ];
    const workers = [{ workerId: "1", node: "n1", deployment: "a", ready: true, startedAt: "6" }];
    expect(
      machinesOf(workers, nodes).map(({ name, node, loads, since }) => [
        name,
        node,
        loads.length,
        since,
      ]),
    ).toEqual([
      ["n1", nodes[1], 1, "4"],
      ["n2", nodes[0], 0, "5"],
    ]);
  });
});
