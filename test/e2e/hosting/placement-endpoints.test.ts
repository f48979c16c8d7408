import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Deployment, DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { bearer } from "../start/platform.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { TestWorker } from "../workers/test-worker.ts";
import { artifact, reasonOf, until, World } from "./world.ts";

const OPERATOR = "the-operators-own-token";

describe("a service of which some endpoints require a GPU, on a node without one", () => {
  let world: World;
  let token: string;

  beforeAll(async () => {
    world = await World.start({ env: { TESSERA_METRICS_TOKEN: OPERATOR } });
    await world.deploy("split", await artifact("split"), {
      settings: { minWorkers: 1, maxWorkers: 4 },
    });
    await deployment(({ status, workers }) => status === DeploymentStatus.DEGRADED && workers > 0);
    token = await workerToken(world, ["split"]);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  const deployment = (isSo: (found: Deployment) => boolean) => world.until("split", isSo);
  const workersOf = async (name: string) =>
    (await world.client.deployments.listWorkers({ deployment: name })).workers;
  const call = (endpoint: string) => world.call("split", `/${endpoint}`, { body: {} });
  const submit = async (name = "split"): Promise<string> =>
    (await world.call(name, "/learn/submit", { body: {} })).json.task_id;

  it("runs the others on the node, and says for what those wait", async () => {
    const { statusReason, workers, endpoints } = await deployment(() => true);
    expect(workers).toBe(1);
    expect(endpoints).toMatchObject([
      { name: "ask", place: WorkerPlace.LOCAL, requires: {} },
      { name: "see", place: WorkerPlace.ANY, requires: { gpu: "*" } },
      { name: "learn", place: WorkerPlace.ANY, requires: { gpu: "*" } },
    ]);
    expect(statusReason).toBe(
      "endpoints see, learn wait for a worker with the label gpu that joins: tessera worker --join URL --deployment split --label gpu=VALUE",
    );
    expect((await call("ask")).status).toBe(200);
    const refused = await call("see");
    expect([refused.status, reasonOf(refused)]).toEqual([503, "NO_MATCHING_WORKER"]);
    expect(refused.text).toContain("no worker that runs endpoint see is connected to this node");
    const taskId = await submit();
    const { json } = await world.call("split", `/learn/status?task_id=${taskId}`);
    expect(json).toMatchObject({
      status: "queued",
      waits_for: expect.stringMatching(/^a worker with the label gpu that joins: tessera worker/),
      queued_reason: {
        code: "no_matching_worker",
        message: expect.stringMatching(/^no worker runs it: it waits for a worker with the label/),
      },
    });
    expect(json).not.toHaveProperty("estimated_start");
  });

  it("refuses a worker without the label, and gives one that has it calls of those only", async () => {
    await using other = new TestWorker(world.platform.url, token);
    await expect(other.register({ deployment: "split", labels: { zone: "b" } })).rejects.toThrow(
      /requires the label gpu, which the worker does not have/,
    );
    const taskId = await submit();
    const flags = ["--label", "gpu=h200"];
    await using agent = startAgent(world, { token, deployment: "split", flags });
    await hasJoined(agent);
    const ended = await world.call("split", `/learn/get?task_id=${taskId}&wait=30`);
    expect(ended.json).toBe(agent.pid);
    await deployment(({ status, workers }) => status === DeploymentStatus.READY && workers === 2);
    expect((await call("see")).json).toBe(agent.pid);
    for (let count = 0; count < 5; count += 1) {
      const { status, json } = await call("ask");
      expect([status, json === agent.pid]).toEqual([200, false]);
    }
    expect((await workersOf("split")).map(({ machine }) => machine?.labels)).toEqual([
      undefined,
      { gpu: "h200" },
    ]);
    await agent.stop();
    const { statusReason } = await deployment(({ workers }) => workers === 1);
    expect(statusReason).toContain("endpoints see, learn wait for");
    expect(reasonOf(await call("see"))).toBe("NO_MATCHING_WORKER");
  });

  it("starts no worker on the node for the tasks that wait for a GPU", async () => {
    const settings = { minWorkers: 0, maxWorkers: 4 };
    await world.deploy("asleep", await artifact("split"), { settings });
    await world.until("asleep", ({ status }) => status === DeploymentStatus.DEGRADED);
    await until(
      () => workersOf("asleep"),
      (all) => all.length === 0,
    );
    await Promise.all(Array.from({ length: 10 }, () => submit("asleep")));
    const desired = async () => {
      const page = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
      const lines = (await page.text()).split("\n");
      const line = lines.find((one) => /^tessera_workers_desired\{.*"asleep"/.test(one));
      return Number(line?.split(" ").at(-1));
    };
    await until(desired, (count) => count > 0);
    expect(await workersOf("asleep")).toEqual([]);
    const asked = await world.call("asleep", "/ask", { body: {} });
    expect(asked.status).toBe(200);
    expect(await workersOf("asleep")).toHaveLength(1);
  });

  it("waits for a node with a GPU where the settings let nobody join, until a revision requires less", async () => {
    await world.deploy("kept", await artifact("split"), { settings: { place: WorkerPlace.LOCAL } });
    const found = await world.until("kept", ({ status }) => status === DeploymentStatus.DEGRADED);
    expect(found.statusReason).toMatch(
      /^endpoints see, learn wait for a node with the label gpu: tessera start --label gpu=VALUE$/,
    );
    await world.deploy("kept", await artifact("split", { 'requires: { gpu: "*" }, ': "" }));
    const other = await world.until("kept", ({ revision }) => revision === 2);
    expect(other.statusReason).toMatch(/^endpoint learn waits for a node/);
  });
});
