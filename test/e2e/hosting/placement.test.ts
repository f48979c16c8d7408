import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { createRemoteIndex, digestOf, writeIndex } from "../../../src/artifacts/index-file.ts";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { json, TestWorker } from "../workers/test-worker.ts";
import { artifact, reasonOf, until, World } from "./world.ts";

const ENDPOINT = {
  kind: "api",
  input: { type: "object", properties: {}, additionalProperties: false },
  files: {},
  output: {},
  timeoutMs: 1_000,
  concurrency: 1,
  retentionMs: 60_000,
  retries: { max: 0, backoffMs: 0 },
  queueLimit: 10,
  priority: 0,
};

function manifestOnly(input: object = ENDPOINT.input): BuiltArtifact {
  const index = createRemoteIndex({
    name: "own",
    endpoints: [{ ...ENDPOINT, name: "one", input }],
  });
  return { index, digest: digestOf(writeIndex(index)), files: new Map(), warnings: [] };
}

describe("on a node with labels", () => {
  let world: World;

  beforeAll(async () => {
    world = await World.start({ env: { TESSERA_LABELS: "gpu=h200,zone=b" } });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const workersOf = async (deployment: string) =>
    (await world.client.deployments.listWorkers({ deployment })).workers;

  it("runs a deployment whose labels the node has, and lists its workers", async () => {
    const settings = { requires: { gpu: "*", zone: "b" }, minWorkers: 2 };
    const { placements } = await world.deployed("fits", await artifact(), { settings });
    const workers = await until(
      () => workersOf("fits"),
      (all) => all.filter(({ ready }) => ready).length === 2,
    );
    for (const worker of workers) {
      expect(worker).toMatchObject({ node: placements[0]?.node, revision: 1, calls: 0 });
      expect(worker.machine).toBeUndefined();
      expect(worker.startedAt).toBeDefined();
    }
  });

  it("starts no worker of one that requires another label, and says which", async () => {
    const settings = { requires: { gpu: "a100" } };
    await world.deploy("lacks", await artifact(), { settings });
    const found = await world.until("lacks", ({ status }) => status === DeploymentStatus.DEGRADED);
    expect(found).toMatchObject({ revision: 1, workers: 0 });
    expect(found.statusReason).toMatch(/waits for a worker with the label gpu=a100 that joins/);
    expect(await workersOf("lacks")).toEqual([]);
    await world.client.deployments.updateDeployment({
      deployment: { name: "lacks", settings: { requires: {} } },
      updateMask: { paths: ["settings.requires"] },
    });
    await world.until("lacks", ({ status }) => status === DeploymentStatus.READY);
    expect((await world.call("lacks", "/say", { body: { text: "a" } })).text).toBe("one a");
  });

  it("waits for workers that join where place is remote: tasks wait, apis are refused", async () => {
    const settings = { place: WorkerPlace.REMOTE };
    await world.deploy("away", await artifact(), { settings });
    const found = await world.until("away", ({ status }) => status === DeploymentStatus.DEGRADED);
    expect(found.settings?.place).toBe(WorkerPlace.REMOTE);
    expect(found.statusReason).toMatch(/tessera worker --join URL --deployment away/);
    const refused = await world.call("away", "/say", { body: { text: "a" } });
    expect([refused.status, reasonOf(refused)]).toEqual([503, "NO_MATCHING_WORKER"]);
    expect(refused.headers["retry-after"]).toBe("5");
    const submitted = await world.call("away", "/work/submit", { body: { text: "later" } });
    expect(submitted.status).toBe(202);
    const path = `/work/status?task_id=${submitted.json.task_id}`;
    expect((await world.call("away", path)).json).toMatchObject({ status: "queued" });
    expect(await workersOf("away")).toEqual([]);

    const update = (place: WorkerPlace) =>
      world.client.deployments.updateDeployment({
        deployment: { name: "away", settings: { place } },
      });
    await update(WorkerPlace.ANY);
    await world.until("away", ({ status }) => status === DeploymentStatus.READY);
    const result = await world.call("away", `/work/get?task_id=${submitted.json.task_id}&wait=20`);
    expect(result.text).toBe("one later");

    await update(WorkerPlace.REMOTE);
    await world.until("away", ({ status }) => status === DeploymentStatus.DEGRADED);
    await until(
      () => workersOf("away"),
      (all) => all.length === 0,
    );
  });

  it("lets workers with the labels join, tells where they run, and lets them go when it requires others", async () => {
    const settings = { place: WorkerPlace.REMOTE, requires: { gpu: "*" } };
    await world.deploy("joined", await artifact(), { settings });
    await world.until("joined", ({ status }) => status === DeploymentStatus.DEGRADED);
    const { value } = await world.platform.createToken(world.cookie, {
      access: ["worker"],
      deployments: ["joined"],
    });
    await using worker = new TestWorker(world.platform.url, value);
    const machine = { deployment: "joined", labels: { zone: "b" } };
    await expect(worker.register(machine)).rejects.toThrow(/requires the label gpu, which/);
    await worker.register({ ...machine, labels: { gpu: "h200" } });
    await worker.open();
    await world.until("joined", ({ status }) => status === DeploymentStatus.READY);
    const answer = world.call("joined", "/say", { body: { text: "a" } });
    const call = await worker.take();
    expect(await workersOf("joined")).toMatchObject([
      {
        workerId: worker.registered?.workerId,
        deployment: "joined",
        revision: 1,
        calls: 1,
        ready: true,
        machine: { hostname: "elsewhere", labels: { gpu: "h200" } },
      },
    ]);
    worker.results(json(call.id, "from afar"));
    expect((await answer).text).toBe("from afar");
    await world.client.deployments.updateDeployment({
      deployment: { name: "joined", settings: { requires: { gpu: "a100" } } },
    });
    await worker.until(({ message }) => message.case === "drain");
    await world.until("joined", ({ workers }) => workers === 0);
    await expect(worker.register({ ...machine, labels: { gpu: "h200" } })).rejects.toThrow(
      /requires the label gpu=a100/,
    );
  });

  it("starts nothing of a service that is a manifest only, whatever place says", async () => {
    for (const place of [WorkerPlace.ANY, WorkerPlace.LOCAL]) {
      await world.deploy("own", manifestOnly(), { settings: { place } });
      const found = await world.until(
        "own",
        ({ status, revision, targetRevision }) =>
          status === DeploymentStatus.DEGRADED && revision === targetRevision,
      );
      expect(found.statusReason).toMatch(/a worker that brings its code/);
      expect(found.endpoints).toMatchObject([{ name: "one" }]);
      const refused = await world.call("own", "/one", { body: {} });
      expect(reasonOf(refused)).toBe("NO_MATCHING_WORKER");
    }
    expect(await workersOf("own")).toEqual([]);
  });

  it("refuses a manifest whose schema is none, and files in a manifest", async () => {
    const invalid = manifestOnly({ type: "object", properties: { a: { type: "nothing" } } });
    await expect(world.deploy("bad", invalid)).rejects.toThrow(/input schema of endpoint one/);
    const { index } = manifestOnly();
    const file = { path: "service.js", size: 1, sha256: "a".repeat(64), executable: false };
    const text = writeIndex({ ...index, files: [file] });
    await expect(
      world.client.deployments.createRevision({ deployment: "bad", index: Buffer.from(text) }),
    ).rejects.toThrow(/tessera.json/);
  });

  it("refuses labels that no machine has", async () => {
    const named = { requires: { "no spaces": "*" } };
    await expect(world.deploy("bad", await artifact(), { settings: named })).rejects.toThrow();
  });
});
