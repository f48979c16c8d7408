import { describe, expect, it } from "vitest";
import { isBusy, rowsOf, workersOf } from "../../src/console/app/pages/machines/rows.ts";

const RUNS = [
  { deployment: "a", workers: 2, ready: 1, calls: 3 },
  { deployment: "b", workers: 1, ready: 1 },
];

describe("the rows of machines", () => {
  it("have what an operator sees of nodes, also where no worker of the organization runs", () => {
    const load = { processors: 8, busyProcessors: 1.5 };
    const machines = [
      { name: "n1", node: true, runs: RUNS, startedAt: "6" },
      { name: "gpu-1", runs: RUNS, heardAt: "9" },
    ];
    const nodes = [
      { nodeId: "n2", machine: "n2", startedAt: "5", facts: { labels: { zone: "b" }, load } },
      { nodeId: "n1", machine: "n", startedAt: "4", drain: { startedBy: "ada@example.com" } },
    ];
    const rows = rowsOf(machines, { nodes, away: [{ machine: "n0", drain: {} }] });
    expect(
      rows.map(({ name, drainedAs, isAway, startedAt }) => [name, drainedAs, isAway, startedAt]),
    ).toEqual([
      ["n1", "n", false, "4"],
      ["n2", "n2", false, "5"],
      ["n0", "n0", true, undefined],
      ["gpu-1", "gpu-1", false, undefined],
    ]);
    expect(rows[0]).toMatchObject({ runs: RUNS, drain: { startedBy: "ada@example.com" } });
    expect(rows[1]).toMatchObject({ load, labels: { zone: "b" } });
  });

  it("say what still runs on a machine that is drained", () => {
    const [node, idle, busy, away] = rowsOf(
      [
        { name: "n1", node: true, runs: RUNS },
        { name: "1", runs: [{ deployment: "a", workers: 2 }], heardAt: "1" },
        { name: "2", runs: RUNS, heardAt: "1" },
        { name: "3" },
      ],
      { nodes: [{ nodeId: "n1", facts: { workers: 0 } }] },
    );
    expect([node, idle, busy, away].map((row) => row && isBusy(row))).toEqual([
      false,
      false,
      true,
      false,
    ]);
    expect(busy && workersOf(busy)).toEqual({ workers: 3, ready: 2, calls: 3 });
    expect(away).toMatchObject({ isAway: true });
  });

  it("of one who is no operator are those of the organization, which cannot drain its nodes", () => {
    expect(rowsOf([{ name: "n1", node: true, runs: RUNS }])).toMatchObject([
      { name: "n1", drainedAs: undefined },
    ]);
    expect(rowsOf([])).toEqual([]);
  });
});
