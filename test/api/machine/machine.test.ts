import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MachineService } from "../../../gen/tessera/v1/machine_pb.js";
import { OperatorService } from "../../../gen/tessera/v1/operator_pb.js";
import { machinesOf } from "../../../src/api/machine/machine.ts";
import type { WorkerRecord } from "../../../src/storage/hosting/nodes.ts";
import { DATABASES } from "../../server/rpc/databases.ts";
import { TestPlatform } from "../../server/rpc/platform.ts";
import { type Company, newCompany, newDeployment } from "../../server/rpc/world.ts";
import { newSchema } from "../../storage/postgres/databases.ts";

const NOW_MS = 100_000;
/** In four scripts, of which one is written from right to left; one also with a mark and a space. */
const NAMES = ["компьютер-9", "计算机", "مضيف", "कंप्यूटर", "zoë’s box/2"];
const LOAD = { processors: 8, busyProcessors: 2.5, memoryBytes: 1_000, usedMemoryBytes: 400 };

function worker(workerId: string, about: Partial<WorkerRecord> = {}): WorkerRecord {
  const usual = { revision: 1, machine: undefined, startedAtMs: 5_000, calls: 0, ready: true };
  return { ...usual, workerId, ...about };
}

function box(hostname: string, about: object = {}) {
  return { hostname, platform: "linux-x64", version: "1", labels: { gpu: "h200" }, ...about };
}

function report(deployment: string, nodeId: string, ...workers: readonly WorkerRecord[]) {
  const about = { nodeMachine: nodeId.split("-")[0] ?? "", deploymentId: deployment, omitted: 0 };
  return { ...about, nodeId, deployment, workers };
}

describe("the machines of an organization", () => {
  it("are put together from the workers of all deployments and nodes, nodes first", () => {
    const machines = machinesOf(
      [
        report("b", "n1-7", worker("3", { machine: box("gpu-1", { load: LOAD }), calls: 2 })),
        report("a", "n1-7", worker("1", { gpus: ["GPU 0"] }), worker("2", { ready: false })),
        report(
          "a",
          "n2-9",
          worker("4", { machine: box("gpu-1", { heardAtMs: 70_000 }), calls: 1 }),
        ),
        report("a", "n2-9", worker("5", { machine: box("कंप्यूटर"), fault: "LOCK_INVALID: no" })),
      ],
      {
        drained: [
          { machine: "gpu-1", drainedAtMs: 1_000, drainedBy: "ada@example.com" },
          { machine: "away", drainedAtMs: 2_000, drainedBy: "token ci" },
        ],
        drainedNodes: [{ machine: "n1", drainedAtMs: 3_000, drainedBy: "operator" }],
        nowMs: NOW_MS,
      },
    );
    expect(machines.map(({ name, node = false }) => [name, node])).toEqual([
      ["n1-7", true],
      ["away", false],
      ["gpu-1", false],
      ["कंप्यूटर", false],
    ]);
    const [node, away, gpu, other] = machines;
    expect(node).toMatchObject({
      runs: [{ deployment: "a", workers: 2, ready: 1, calls: 0 }],
      gpus: ["GPU 0"],
      drain: { startedBy: "operator" },
    });
    expect(away).toMatchObject({ runs: [], drain: { startedBy: "token ci" } });
    expect(away).not.toHaveProperty("heardAt");
    expect(gpu).toMatchObject({
      runs: [
        { deployment: "a", workers: 1, calls: 1 },
        { deployment: "b", workers: 1, calls: 2 },
      ],
      labels: { gpu: "h200" },
      load: { processors: 8, busyProcessors: 2.5, memoryBytes: 1_000n, usedMemoryBytes: 400n },
      heardAt: { seconds: 100n },
      drain: { startedBy: "ada@example.com" },
    });
    expect(other).toMatchObject({ faults: ["LOCK_INVALID: no"] });
    expect(other).not.toHaveProperty("drain");
  });

  it("say of one what fits into an answer, and how much more there is", () => {
    const reports = Array.from({ length: 2_000 }, (_, index) =>
      report(`d${index}`, "n1", worker(`${index}`, { fault: `fault ${index}` })),
    );
    const [machine] = machinesOf(reports, { drained: [], drainedNodes: [], nowMs: NOW_MS });
    expect(machine).toMatchObject({ omittedRuns: 1_900 });
    expect(machine?.runs).toHaveLength(100);
    expect(machine?.faults).toHaveLength(10);
  });
});

describe.each(DATABASES)("MachineService on $database", ({ open }) => {
  let platform: TestPlatform;
  let company: Company;
  let deployment: string;
  const { listMachines, drainMachine, resumeMachine } = MachineService.method;

  const call = (method: Parameters<TestPlatform["call"]>[0], message: object = {}) =>
    platform.call(
      method,
      { organization: company.name, ...message },
      { headers: company.admin.headers },
    );
  const listed = async () => (await call(listMachines)).body.machines;

  beforeAll(async () => {
    // It lists nodes, which are of the whole database.
    platform = await TestPlatform.start(await open(newSchema()));
    company = await newCompany(platform);
    deployment = await newDeployment(platform, company);
    const { accounts, hosting } = platform.storage;
    const { organizationId } = company;
    const found = await accounts.findDeployment({ organizationId, name: deployment });
    const key = { organizationId, deploymentId: found?.deploymentId ?? "" };
    const nowMs = platform.now();
    await hosting.beat({ nodeId: "node-1", machine: "node", nowMs, ttlMs: 3_600_000 });
    const status = { status: "ready", reason: "", version: 1, workers: 1 } as const;
    const revisions = { revision: 1, targetRevision: 1 };
    await hosting.reportDeployments({
      ...{ nowMs, nodeId: "node-1" },
      reports: [{ ...key, ...status, ...revisions }],
    });
    const workers = [
      worker("1", { machine: box("gpu-1"), calls: 1 }),
      worker("2"),
      ...NAMES.map((name) => worker(name, { machine: box(name) })),
    ];
    await hosting.reportWorkers({
      nodeId: "node-1",
      reports: [{ ...key, workers, omitted: 0 }],
    });
  });
  afterAll(() => platform[Symbol.asyncDispose]());

  it("drains a machine that has joined, which stays so, and takes it back", async () => {
    expect(await listed()).toMatchObject([
      { name: "node-1", node: true, runs: [{ deployment, workers: 1 }] },
      { name: "gpu-1", runs: [{ deployment, workers: 1, calls: 1 }] },
      ...NAMES.toSorted().map((name) => ({ name })),
    ]);
    for (let time = 0; time < 2; time += 1) {
      const { body } = await call(drainMachine, { machine: "gpu-1" });
      expect(body).toMatchObject({ name: "gpu-1", drain: { startedBy: company.admin.email } });
    }
    expect((await listed())[1]).toMatchObject({ name: "gpu-1", drain: {} });
    const { body } = await call(resumeMachine, { machine: "gpu-1" });
    expect(body).not.toHaveProperty("drain");
    expect((await listed())[1]).not.toHaveProperty("drain");
  });

  it("drains machines by their names in any script", async () => {
    for (const machine of NAMES) {
      expect((await call(drainMachine, { machine })).body).toMatchObject({ name: machine });
    }
    const drained = (await listed()).filter((machine: object) => "drain" in machine);
    expect(drained.map(({ name }: { name: string }) => name).sort()).toEqual(NAMES.toSorted());
    for (const machine of NAMES) {
      expect((await call(resumeMachine, { machine })).body).not.toHaveProperty("drain");
    }
  });

  it("drains neither a node nor a machine that nobody knows", async () => {
    for (const machine of ["node-1", "node", "no such machine"]) {
      expect(await call(drainMachine, { machine })).toMatchObject({ outcome: "MACHINE_NOT_FOUND" });
    }
    expect(await call(drainMachine, { machine: "" })).toMatchObject({ outcome: "REQUEST_INVALID" });
  });

  it("says that a node is drained, and an operator sees it in the list of nodes", async () => {
    const { admin } = company;
    await platform.accounts.setOperator({
      ...platform.deed(),
      ...{ userId: admin.userId, operator: true },
    });
    const operate = (method: keyof typeof OperatorService.method, message: object = {}) =>
      platform.call(OperatorService.method[method], message, { headers: admin.headers });
    // Who calls is remembered for a moment.
    await expect
      .poll(async () => (await operate("drainNode", { machine: "node" })).outcome)
      .not.toBe("OPERATOR_REQUIRED");
    expect((await listed())[0]).toMatchObject({ drain: { startedBy: admin.email } });
    const { body } = await operate("listNodes");
    expect(body).toMatchObject({
      nodes: [{ nodeId: "node-1", machine: "node", drain: { startedBy: admin.email } }],
    });
    await platform.storage.hosting.endNode({ nodeId: "node-1" });
    await expect
      .poll(async () => (await operate("listNodes")).body, { timeout: 20_000 })
      .toMatchObject({ away: [{ machine: "node" }] });
    await operate("resumeNode", { machine: "node" });
    expect((await operate("listNodes")).body).toMatchObject({ away: [] });
    expect(await operate("drainNode", { machine: "node" })).toMatchObject({
      outcome: "MACHINE_NOT_FOUND",
    });
  });
});
