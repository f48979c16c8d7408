/** The machines of a deployment, on a cluster whose answers the test gives. */
import { create } from "@bufbuild/protobuf";
import { beforeEach, expect, it } from "vitest";
import { WorkersWantedSchema } from "../../../gen/tessera/v1/launcher_pb.js";
import { Fleet, type MachineKind } from "../../../src/agent/launcher/fleet.ts";
import type {
  ClusterMachine,
  MachineOrder,
  Machines,
} from "../../../src/agent/launcher/machines.ts";

const DEPLOYMENT = "deployment-id";
const MINUTE_MS = 60_000;

class Cluster implements Machines {
  readonly machines = new Map<string, ClusterMachine>();
  readonly stopped: string[] = [];
  readonly forced: string[] = [];
  starts = 0;
  quota = Number.POSITIVE_INFINITY;
  isWaiting = false;
  /** Why it stops nothing; empty: it does. */
  refusal = "";
  /** It goes on showing what is over, as Slurm does for minutes. */
  showsOver = false;
  nowMs = 1_000_000;

  async start({ id }: MachineOrder): Promise<void> {
    this.starts += 1;
    if (this.machines.size >= this.quota) {
      throw new Error("exceeded quota");
    }
    const { nowMs: startedAtMs, isWaiting } = this;
    const taken = { id, deploymentId: DEPLOYMENT, startedAtMs, isWaiting };
    this.machines.set(id, { ...taken, isOver: false, reason: isWaiting ? "Resources" : "" });
  }

  async stop({ id }: Pick<ClusterMachine, "id">, { force } = { force: false }): Promise<void> {
    if (this.refusal !== "") {
      throw new Error(this.refusal);
    }
    (force ? this.forced : this.stopped).push(id);
    if (force || (this.machines.get(id)?.isOver && !this.showsOver)) {
      this.machines.delete(id);
    }
  }

  async list(): Promise<readonly ClusterMachine[]> {
    return [...this.machines.values()];
  }

  change(id: string, fields: Partial<ClusterMachine>): void {
    const machine = this.machines.get(id);
    if (machine) {
      this.machines.set(id, { ...machine, ...fields });
    }
  }

  get ids(): string[] {
    return [...this.machines.keys()];
  }
}

let cluster: Cluster;
let joined: Map<string, boolean>;
let ids: number;
beforeEach(() => {
  cluster = new Cluster();
  joined = new Map();
  ids = 0;
});

function wanted(workers: number, requires: Record<string, string> = {}) {
  const machines = [...joined].map(([machine, ready]) => ({ machine, ready }));
  const facts = { deploymentId: DEPLOYMENT, deployment: "digits" };
  return create(WorkersWantedSchema, { ...facts, workers, requires, machines });
}

function fleetOf(workers: number, kind: Partial<MachineKind> = {}): Fleet {
  const options = {
    ...{ maxMachines: 10, workers: 1, labels: {}, lifetimeMs: 60 * MINUTE_MS },
    joinWithinMs: 15 * MINUTE_MS,
    ...kind,
  };
  return new Fleet(
    {
      ...options,
      deploymentId: DEPLOYMENT,
      machines: cluster,
      order: async (id) => ({ id, deploymentId: DEPLOYMENT, env: {}, endsAtMs: 0 }),
      newId: () => `m${++ids}`,
      now: () => cluster.nowMs,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      pausePart: () => 1,
    },
    wanted(workers),
  );
}

async function round(fleet: Fleet, afterMs = 10_000, workers?: number): Promise<void> {
  cluster.nowMs += afterMs;
  if (workers !== undefined) {
    fleet.wants(wanted(workers));
  }
  await fleet.reconcile(await cluster.list());
}

function join(...machines: readonly string[]): void {
  for (const machine of machines) {
    joined.set(machine, true);
  }
}

it("starts as many machines as bring the workers that are wanted, at most its bound", async () => {
  const fleet = fleetOf(5, { workers: 2 });
  await round(fleet);
  expect(cluster.ids).toEqual(["m1", "m2", "m3"]);
  await round(fleet);
  expect(cluster.starts).toBe(3);
  await round(fleet, 0, 1_000);
  expect(cluster.starts).toBe(10);
  expect(fleet.state).toMatchObject({ machines: 10, starting: 10, joined: 0, failed: 0 });
  join("m1", "m2");
  await round(fleet, 0, 1_000);
  expect(fleet.state).toMatchObject({ starting: 8, joined: 2, reason: "" });
});

it("of 1,000 wanted with a quota of 10, ten run, and the reason is told", async () => {
  cluster.quota = 10;
  const fleet = fleetOf(1_000, { maxMachines: 1_000 });
  await round(fleet);
  expect(cluster.machines.size).toBe(10);
  join(...cluster.ids);
  await round(fleet, 0, 1_000);
  expect(cluster.starts).toBe(11);
  const state = { machines: 1_000, starting: 0, joined: 10, failed: 1 };
  expect(fleet.state).toEqual({
    ...state,
    reason: "a machine could not be started: exceeded quota",
  });
  // One at a time, with pauses that double: after 5, 10, 20 … s.
  const tries: number[] = [];
  for (let second = 1; second <= 40; second += 1) {
    const before = cluster.starts;
    await round(fleet, 1_000, 1_000);
    if (cluster.starts > before) {
      tries.push(second);
    }
  }
  expect(tries).toEqual([5, 15, 35]);
  expect(cluster.machines.size).toBe(10);
  cluster.quota = 1_000;
  await round(fleet, 60_000, 1_000);
  join(...cluster.ids);
  await round(fleet, 0, 1_000);
  expect(fleet.state).toMatchObject({ failed: 0, reason: "" });
  expect(cluster.machines.size).toBeGreaterThan(20);
});

it("gives up a machine that never joins, tells why, and tries one at a time", async () => {
  const fleet = fleetOf(3);
  await round(fleet);
  cluster.change("m1", { reason: "ErrImagePull" });
  await round(fleet);
  expect(fleet.state.reason).toBe("3 have not joined yet: ErrImagePull");
  await round(fleet, 15 * MINUTE_MS + 1);
  expect(cluster.stopped).toEqual(["m1", "m2", "m3"]);
  expect(fleet.state).toMatchObject({ starting: 0, failed: 3 });
  for (const id of cluster.ids) {
    cluster.change(id, { isOver: true });
  }
  await round(fleet, 10_000);
  expect(cluster.ids).toEqual(["m4"]);
  expect(fleet.state).toMatchObject({ starting: 1, failed: 3 });
  expect(fleet.state.reason).toBe("a machine had not joined after 900 s");
  await round(fleet, MINUTE_MS);
  expect(cluster.starts).toBe(4);
  join("m4");
  await round(fleet, 0, 3);
  expect(fleet.state).toMatchObject({ starting: 2, joined: 1, failed: 0, reason: "" });
});

it("counts a machine that ends before it has joined, once, with what the cluster says", async () => {
  const fleet = fleetOf(1);
  await round(fleet);
  cluster.change("m1", { isOver: true, reason: "no GPU is free" });
  await round(fleet);
  expect(cluster.stopped).toEqual(["m1"]);
  expect(fleet.state).toMatchObject({
    failed: 1,
    reason: "a machine ended before it had joined: no GPU is free",
  });
  await round(fleet, 1_000);
  expect(fleet.state.failed).toBe(1);
});

it("replaces at once a machine that ends in the middle of its work, and counts no failure", async () => {
  const fleet = fleetOf(2);
  await round(fleet);
  join("m1", "m2");
  await round(fleet, 10_000, 2);
  // The platform has not noticed yet.
  cluster.change("m1", { isOver: true, reason: "TIMEOUT (TimeLimit)" });
  await round(fleet, 10_000, 2);
  expect(cluster.stopped).toEqual(["m1"]);
  expect(cluster.ids).toEqual(["m2", "m3"]);
  expect(fleet.state).toMatchObject({ starting: 1, joined: 1, failed: 0, reason: "" });
});

it("removes what is over once, however long the cluster shows it, and again where that was refused", async () => {
  cluster.showsOver = true;
  const fleet = fleetOf(1);
  await round(fleet);
  join("m1");
  await round(fleet, 10_000, 1);
  cluster.change("m1", { isOver: true });
  cluster.refusal = "the controller is down";
  await round(fleet);
  expect(fleet.state.reason).toBe("a machine could not be stopped: the controller is down");
  cluster.refusal = "";
  await round(fleet);
  await round(fleet);
  await round(fleet);
  expect(cluster.stopped).toEqual(["m1"]);
  expect(fleet.state).toMatchObject({ failed: 0, reason: "" });
});

it("removes what is left of a machine that the cluster has removed by itself", async () => {
  const fleet = fleetOf(1);
  await round(fleet);
  join("m1");
  await round(fleet, 10_000, 1);
  cluster.machines.delete("m1");
  joined.clear();
  await round(fleet, 10_000, 1);
  await round(fleet);
  expect(cluster.stopped).toEqual(["m1"]);
  expect(cluster.ids).toEqual(["m2"]);
});

it("counts a machine that never joins once, also where it cannot be stopped at first", async () => {
  const fleet = fleetOf(1);
  await round(fleet);
  await round(fleet);
  cluster.refusal = "no route to host";
  await round(fleet, 15 * MINUTE_MS + 1);
  await round(fleet);
  expect(fleet.state).toMatchObject({
    ...{ starting: 1, failed: 0 },
    reason: "a machine could not be stopped: no route to host",
  });
  cluster.refusal = "";
  await round(fleet);
  await round(fleet);
  expect(cluster.stopped).toEqual(["m1"]);
  expect(fleet.state).toMatchObject({ starting: 1, failed: 1 });
  expect(cluster.starts).toBe(2);
});

it("lets machines wait for the cluster, says why, and gives up when their time is over", async () => {
  cluster.isWaiting = true;
  const fleet = fleetOf(2);
  await round(fleet);
  await round(fleet, 30 * MINUTE_MS);
  expect(fleet.state).toMatchObject({ starting: 2, failed: 0 });
  expect(fleet.state.reason).toBe("2 wait for the cluster: Resources");
  cluster.change("m1", { isWaiting: false, reason: "" });
  await round(fleet);
  await round(fleet, 10 * MINUTE_MS);
  expect(fleet.state).toMatchObject({ starting: 2, failed: 0 });
  await round(fleet, 21 * MINUTE_MS);
  expect(cluster.stopped).toEqual(["m1", "m2"]);
  expect(fleet.state.reason).toMatch(/waited for the cluster until its time was over: Resources/);
});

it("replaces a machine that has left, and stops none for that", async () => {
  const fleet = fleetOf(1);
  await round(fleet);
  join("m1");
  await round(fleet, 10_000, 1);
  joined.clear();
  await round(fleet, 50_000, 1);
  expect(cluster.starts).toBe(1);
  await round(fleet, 10_000, 1);
  expect(cluster.ids).toEqual(["m1", "m2"]);
  cluster.change("m1", { isOver: true });
  await round(fleet);
  expect(fleet.state).toMatchObject({ starting: 1, failed: 0 });
});

it("stops what is not wanted when that has lasted a minute, the youngest that has not joined first", async () => {
  const fleet = fleetOf(3);
  await round(fleet);
  join("m1", "m2");
  await round(fleet, 10_000, 3);
  await round(fleet, 10_000, 1);
  await round(fleet, 50_000, 1);
  expect(cluster.stopped).toEqual([]);
  await round(fleet, 10_000, 1);
  expect(cluster.stopped).toEqual(["m3", "m1"]);
  await round(fleet, 10_000, 1);
  expect(cluster.stopped).toEqual(["m3", "m1"]);
  expect(fleet.state).toMatchObject({ machines: 1, joined: 1, starting: 0 });
});

it("keeps its machines while a node restarts, which wants none and has none", async () => {
  const fleet = fleetOf(2);
  await round(fleet);
  join("m1", "m2");
  await round(fleet, 10_000, 2);
  joined.clear();
  await round(fleet, 20_000, 0);
  await round(fleet, 20_000, 0);
  join("m1", "m2");
  await round(fleet, 10_000, 2);
  await round(fleet, 60_000, 2);
  expect([cluster.starts, cluster.stopped]).toEqual([2, []]);
});

it("goes on with the machines of a launcher that was killed between start and join", async () => {
  await round(fleetOf(2));
  const next = fleetOf(2);
  await round(next);
  expect(next.state).toMatchObject({ starting: 2, joined: 0 });
  expect(cluster.starts).toBe(2);
  join("m1");
  await round(next, 10_000, 2);
  expect(next.state).toMatchObject({ starting: 1, joined: 1 });
});

it("counts what has joined and is not on its cluster, and cannot stop it", async () => {
  join("elsewhere");
  const fleet = fleetOf(1);
  await round(fleet, 0, 1);
  expect(cluster.starts).toBe(0);
  expect(fleet.state).toMatchObject({ joined: 1 });
  await round(fleet, 0, 0);
  await round(fleet, 2 * MINUTE_MS, 0);
  expect(cluster.stopped).toEqual([]);
});

it("ends a machine by force that is there after its time", async () => {
  const fleet = fleetOf(1);
  await round(fleet);
  join("m1");
  await round(fleet, 10_000, 1);
  await round(fleet, 61 * MINUTE_MS, 1);
  expect(cluster.forced).toEqual(["m1"]);
});

it("starts nothing for a deployment that requires other labels, and says which", async () => {
  const fleet = fleetOf(0, { labels: { gpu: "a100", zone: "b" } });
  fleet.wants(wanted(3, { gpu: "h200", zone: "*", disk: "*" }));
  await fleet.reconcile([]);
  expect(cluster.starts).toBe(0);
  expect(fleet.state).toMatchObject({ machines: 0 });
  expect(fleet.state.reason).toMatch(/requires gpu=h200, disk=VALUE, which/);
  const many = Array.from({ length: 32 }, (_, index) => [`label-${index}`, "v".repeat(100)]);
  fleet.wants(wanted(3, Object.fromEntries(many)));
  expect(fleet.state.reason).toHaveLength(1_000);
  fleet.wants(wanted(1, { gpu: "a100" }));
  await fleet.reconcile([]);
  expect(cluster.starts).toBe(1);
});

it("tells what the cluster refuses to list or to stop until it does", async () => {
  const fleet = fleetOf(1);
  await round(fleet);
  fleet.unlisted("the controller is down");
  expect(fleet.state.reason).toBe("the machines cannot be listed: the controller is down");
  await round(fleet);
  expect(fleet.state.reason).toBe("");
});
