import { once } from "node:events";
import { connect } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { artifact, declaring, reasonOf, until, upload, World } from "./world.ts";

describe("a deployment", () => {
  let world: World;

  beforeAll(async () => {
    world = await World.start();
    await world.deployed("echo", await artifact());
  });
  afterAll(() => world[Symbol.asyncDispose]());

  it("says how it fares and what it can be called for", async () => {
    const { port } = world.platform.started;
    const deployment = await world.client.deployments.getDeployment({ deployment: "echo" });
    expect(deployment).toMatchObject({
      status: DeploymentStatus.READY,
      statusReason: "",
      url: `http://echo.acme.apps.localhost:${port}`,
      revision: 1,
      targetRevision: 1,
      workers: 1,
      nodes: 1,
      settings: { minWorkers: 1, maxWorkers: 2, memoryMib: 512, cpu: 1 },
    });
    expect(deployment.endpoints.map(({ name }) => name)).toEqual(["say", "variable", "work"]);
  });

  it.each([
    [1, {}, { minWorkers: 1, maxWorkers: 1 }],
    [3, {}, { minWorkers: 1, maxWorkers: 3 }],
    [1, { minWorkers: 2 }, { minWorkers: 2, maxWorkers: 2 }],
    [4, { maxWorkers: 2 }, { minWorkers: 1, maxWorkers: 2 }],
  ] as const)(
    "of a service that declares %s workers, deployed with %j, has %j",
    async (workers, settings, stored) => {
      const name = "declaring";
      await world.deploy(name, await declaring(workers), { settings });
      const deployment = await world.client.deployments.getDeployment({ deployment: name });
      expect(deployment.settings).toMatchObject(stored);
      await world.client.deployments.deleteDeployment({ deployment: name });
    },
  );

  it("takes its number of workers from its first revision, and keeps it with others", async () => {
    const { deployments } = world.client;
    await deployments.createDeployment({ name: "declaring" });
    for (const workers of [1, 3] as const) {
      await world.deploy("declaring", await declaring(workers));
      const { settings } = await deployments.getDeployment({ deployment: "declaring" });
      expect(settings?.maxWorkers).toBe(1);
    }
    await deployments.deleteDeployment({ deployment: "declaring" });
  });

  it("answers on its own host, and on the platform's by its header", async () => {
    const body = { text: "hello" };
    expect(await world.call("echo", "/say", { body })).toMatchObject({ text: "one hello" });
    const named = { host: "localhost", headers: { "tessera-deployment": "acme/echo" } };
    expect(await world.call("", "/say", { body, ...named })).toMatchObject({ text: "one hello" });
    const task = await world.call("", "/api/v1/tasks?deployment=acme/echo", { host: "localhost" });
    expect(task.status).toBe(200);
  });

  it("describes itself on its own host, where the platform shows its own pages on its", async () => {
    expect((await world.call("echo", "/schema.json")).json).toMatchObject({ name: "echo" });
    expect((await world.call("echo", "/docs.json")).json).toMatchObject({ openapi: "3.1.0" });
    const page = await world.call("echo", "/");
    const pages = await world.call("", "/", { host: "localhost" });
    expect([page.status, pages.status]).toEqual([200, 200]);
    expect(page.text).not.toBe(pages.text);
    expect((await world.call("echo", "/sign-in")).status).not.toBe(200);
    expect((await world.call("", "/sign-in", { host: "localhost" })).status).toBe(200);
  });

  it("answers over HTTP/2 too, and has nothing of the platform's on its host", async () => {
    const { port } = world.platform.started;
    const session = connect(`http://127.0.0.1:${port}`);
    const get = async (path: string) => {
      const stream = session.request({
        ":path": path,
        ":authority": `echo.acme.apps.localhost:${port}`,
      });
      const [headers] = await once(stream, "response");
      stream.resume();
      return headers[":status"];
    };
    expect([await get("/"), await get("/schema.json"), await get("/sign-in")]).toEqual([
      200, 200, 404,
    ]);
    session.close();
    const me = async (host: string) =>
      (await world.call("", "/api/v1/me", { host, headers: world.cookie })).status;
    expect(await me("localhost")).toBe(200);
    expect(await me(`echo.acme.apps.localhost:${port}`)).toBe(404);
  });

  it("runs tasks that are asked for on its host", async () => {
    const submitted = await world.call("echo", "/work/submit", { body: { text: "later" } });
    expect(submitted.status).toBe(202);
    const id = submitted.json.task_id;
    const result = await world.call("echo", `/work/get?task_id=${id}&wait=20`);
    expect(result.text).toBe("one later");
  });

  it("is not found on a host that is none, which names others to members only", async () => {
    const body = { text: "hello" };
    const stranger = await world.call("other", "/say", { body });
    expect([stranger.status, reasonOf(stranger)]).toEqual([401, "TOKEN_MISSING"]);
    expect(stranger.text).not.toContain("echo");
    const { value } = await world.platform.createToken(world.cookie);
    const member = await world.call("other", "/say", { body, token: value });
    expect(member.json.message).toContain("it has: echo");
    for (const path of ["/readyz", "/"]) {
      expect((await world.call("other", path, { token: value })).status).toBe(404);
    }
    const nameless = await world.call("", "/say", { body, host: "localhost" });
    expect(nameless.json.message).toContain("Tessera-Deployment");
    const torn = await world.call("echo", "/say", {
      body,
      headers: { "tessera-deployment": "acme/other" },
    });
    expect([torn.status, reasonOf(torn)]).toEqual([400, "REQUEST_INVALID"]);
  });

  it("gives its workers their variables and secrets, and shows no secret to anybody", async () => {
    const secrets = { API_KEY: "a very secret value" };
    await world.deployed("variables", await artifact(), {
      settings: { env: { MODEL: "small" } },
      secrets,
    });
    const variable = async (name: string) =>
      (await world.call("variables", "/variable", { body: { name } })).json;
    expect(await variable("MODEL")).toBe("small");
    expect(await variable("API_KEY")).toBe(secrets.API_KEY);
    expect(await variable("HOME")).toBeNull();
    const shown = await world.client.deployments.getDeployment({ deployment: "variables" });
    expect(shown.settings).toMatchObject({ env: { MODEL: "small" }, secretNames: ["API_KEY"] });
    const everything = JSON.stringify(
      [
        await world.client.deployments.listDeployments({}),
        await world.client.deployments.listRevisions({ deployment: "variables" }),
      ],
      (_, value) => (typeof value === "bigint" ? String(value) : value),
    );
    expect(everything).not.toContain(secrets.API_KEY);
    await expect(
      world.deploy("variables", await artifact(), { secrets: { NODE_OPTIONS: "--version" } }),
    ).rejects.toThrow("NODE_OPTIONS");
    await world.client.deployments.updateDeployment({
      deployment: { name: "variables", settings: { env: { MODEL: "large" } } },
    });
    await until(
      () => variable("MODEL"),
      (value) => value === "large",
    );
  });

  it("shows what its workers wrote, and what they write from then on", async () => {
    const controller = new AbortController();
    const lines: string[] = [];
    const following = (async () => {
      const stream = world.client.deployments.watchDeploymentLogs(
        { deployment: "echo", follow: true },
        { signal: controller.signal },
      );
      for await (const { text } of stream) {
        lines.push(text);
      }
    })().catch(() => undefined);
    await world.call("echo", "/say", { body: { text: "for the log" } });
    await until(
      async () => lines,
      () => lines.includes("say: said for the log"),
    );
    controller.abort();
    await following;
    const sequences: number[] = [];
    for await (const { sequence } of world.client.deployments.watchDeploymentLogs({
      deployment: "echo",
    })) {
      sequences.push(Number(sequence));
    }
    expect(sequences).toEqual(sequences.map((_, index) => index + (sequences[0] ?? 0)));
  });

  it("keeps its tasks while it is stopped, and runs them when it is started", async () => {
    await world.deployed("stopping", await artifact(), { settings: { maxWorkers: 1 } });
    const submit = async (text: string, forMs = 0) =>
      (await world.call("stopping", "/work/submit", { body: { text, forMs } })).json.task_id;
    const status = async (id: string) =>
      (await world.call("stopping", `/work/status?task_id=${id}`)).json.status;
    const running = await submit("running", 3_000);
    const queued = await submit("queued");
    await world.client.deployments.stopDeployment({ deployment: "stopping" });
    await until(
      () => world.call("stopping", "/say", { body: { text: "x" } }),
      (answer) => reasonOf(answer) === "DEPLOYMENT_STOPPED",
    );
    expect((await world.call("stopping", "/readyz")).status).toBe(503);
    await until(
      () => status(running),
      (word) => word === "success",
    );
    await world.until("stopping", ({ workers }) => workers === 0);
    expect(await status(queued)).toBe("queued");
    await world.client.deployments.startDeployment({ deployment: "stopping" });
    await until(
      () => status(queued),
      (word) => word === "success",
    );
    await world.until("stopping", ({ status }) => status === DeploymentStatus.READY);
    expect((await world.call("stopping", "/say", { body: { text: "x" } })).text).toBe("one x");
  });

  it("with no workers at rest is ready, and wakes for a call and for a task", async () => {
    const asleep = { settings: { minWorkers: 0, maxWorkers: 1 } };
    await world.deployed("asleep", await artifact(), asleep);
    expect((await world.call("asleep", "/readyz")).status).toBe(200);
    // It was proved to start; a node that begins anew starts none.
    await world.client.deployments.stopDeployment({ deployment: "asleep" });
    await world.until(
      "asleep",
      ({ status, workers }) => status === DeploymentStatus.STOPPED && workers === 0,
    );
    await world.client.deployments.startDeployment({ deployment: "asleep" });
    await world.until(
      "asleep",
      ({ status, workers }) => status === DeploymentStatus.READY && workers === 0,
    );
    expect((await world.call("asleep", "/readyz")).status).toBe(200);
    const submitted = await world.call("asleep", "/work/submit", { body: { text: "woken" } });
    const result = await world.call(
      "asleep",
      `/work/get?task_id=${submitted.json.task_id}&wait=20`,
    );
    expect(result.text).toBe("one woken");
  });

  it("is deleted with tasks only when that is forced, and leaves nothing to one of its name", async () => {
    await world.deployed("doomed", await artifact());
    const ids: string[] = [];
    for (const text of ["a", "b", "c"]) {
      const { json } = await world.call("doomed", "/work/submit", {
        body: { text, forMs: 60_000 },
      });
      ids.push(json.task_id);
    }
    const { deployments } = world.client;
    await expect(deployments.deleteDeployment({ deployment: "doomed" })).rejects.toThrow(
      /2 queued and 1 running tasks/,
    );
    await deployments.deleteDeployment({ deployment: "doomed", force: true });
    expect((await world.call("doomed", "/schema.json")).status).toBe(401);
    await world.deployed("doomed", await artifact());
    const status = await world.call("doomed", `/work/status?task_id=${ids[0]}`);
    expect(status.status).toBe(404);
  });

  it("goes back to an earlier revision", async () => {
    await world.deployed("back", await artifact());
    const two = await artifact("echo", { '"one"': '"two"' });
    await world.deploy("back", two);
    await world.until("back", ({ revision }) => revision === 2);
    const say = async () => (await world.call("back", "/say", { body: { text: "x" } })).text;
    expect(await say()).toBe("two x");
    await world.client.deployments.rollBackDeployment({ deployment: "back" });
    await world.until("back", ({ revision }) => revision === 3);
    expect(await say()).toBe("one x");
    const { revisions } = await world.client.deployments.listRevisions({ deployment: "back" });
    expect(revisions.map(({ revision, rolledBackTo }) => [revision, rolledBackTo])).toEqual([
      [3, 1],
      [2, 0],
      [1, 0],
    ]);
    expect(await upload(world.client, two)).toEqual([]);
  });
});
