import { afterAll, beforeAll, expect, it } from "vitest";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { artifact, World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

/** A service that, when it is told so, waits at import for what never comes. */
const service = (text: string) =>
  artifact("echo", {
    'VERSION = "one";': `VERSION = "${text}";
      if (process.env.MODE === "fail") {
        throw new Error("the weights of ${text} are corrupt");
      }
      if (process.env.MODE === "hang") {
        console.log("hangs ${text}");
        await new Promise(() => {});
      }`,
  });

const HANGS = { settings: { env: { MODE: "hang" } } };
const FAILS = { settings: { env: { MODE: "fail" } } };
const SERVES = { settings: { env: { MODE: "serve" } } };

/** Resolves when the line stands in the log of the deployment: a worker has written it. */
async function written(name: string, line: string): Promise<void> {
  const signal = AbortSignal.timeout(20_000);
  const logs = world.client.deployments.watchDeploymentLogs(
    { deployment: name, follow: true },
    { signal },
  );
  for await (const { text } of logs) {
    if (text === line) {
      return;
    }
  }
}

const say = async (name: string) =>
  (await world.call(name, "/say", { body: { text: "hello" } })).text;

it("a revision that hangs gives way to the one that mends it, and what served goes on", async () => {
  await world.deployed("mended", await service("one"), SERVES);
  await world.deploy("mended", await service("two"), HANGS);
  await written("mended", "hangs two");
  expect(await say("mended")).toBe("one hello");
  await world.deploy("mended", await service("three"), SERVES);
  await world.until("mended", ({ revision }) => revision === 3);
  expect(await say("mended")).toBe("three hello");
  const { status, statusReason } = await world.client.deployments.getDeployment({
    deployment: "mended",
  });
  expect([status, statusReason]).toEqual([DeploymentStatus.READY, ""]);
});

it("a roll-out that failed says nothing of the one that comes after it", async () => {
  const { deployments } = world.client;
  await world.deployed("broken", await service("one"), SERVES);
  await world.deploy("broken", await service("two"), FAILS);
  const failed = await world.until("broken", ({ status }) => status === DeploymentStatus.FAILED);
  expect(failed.statusReason).toMatch(
    /^revision 2 could not start: [\s\S]*weights of two are corrupt; revision 1 goes on serving/,
  );
  await world.deploy("broken", await service("three"), HANGS);
  await written("broken", "hangs three");
  const loading = await world.until("broken", ({ statusReason }) => statusReason !== "");
  expect([loading.status, loading.statusReason, loading.revision]).toEqual([
    DeploymentStatus.STARTING,
    "revision 3 is starting",
    1,
  ]);
  await world.deploy("broken", await service("four"), FAILS);
  await world.until("broken", ({ status }) => status === DeploymentStatus.FAILED);
  await deployments.updateDeployment({
    deployment: { name: "broken", ...SERVES },
    updateMask: { paths: ["settings.env"] },
  });
  const rolledBack = await deployments.rollBackDeployment({ deployment: "broken", revision: 1 });
  expect(rolledBack.targetRevision).toBe(5);
  const states: DeploymentStatus[] = [];
  await world.until("broken", ({ status, targetRevision }) => {
    states.push(status);
    return status === DeploymentStatus.READY && targetRevision === 5;
  });
  expect(states).not.toContain(DeploymentStatus.FAILED);
});

it("nor does one that failed by settings that are taken back", async () => {
  await world.deployed("unset", await service("one"), SERVES);
  const set = (settings: typeof SERVES | typeof FAILS) =>
    world.client.deployments.updateDeployment({
      deployment: { name: "unset", ...settings },
      updateMask: { paths: ["settings.env"] },
    });
  await set(FAILS);
  await world.until("unset", ({ status }) => status === DeploymentStatus.FAILED);
  await set(SERVES);
  await world.until("unset", ({ status }) => status === DeploymentStatus.READY);
  expect(await say("unset")).toBe("one hello");
});

it("so does the first revision of a deployment", async () => {
  await world.deploy("first", await service("one"), HANGS);
  await written("first", "hangs one");
  await world.deployed("first", await service("two"), SERVES);
  expect(await say("first")).toBe("two hello");
});

it("a deployment whose roll-out hangs can be stopped and deleted", async () => {
  await world.deploy("stopped", await service("one"), HANGS);
  await written("stopped", "hangs one");
  await world.client.deployments.stopDeployment({ deployment: "stopped" });
  await world.until("stopped", ({ status }) => status === DeploymentStatus.STOPPED);
  await world.deploy("stopped", await service("two"), HANGS);
  await world.client.deployments.startDeployment({ deployment: "stopped" });
  await written("stopped", "hangs two");
  await world.client.deployments.deleteDeployment({ deployment: "stopped" });
  expect((await world.call("stopped", "/say", { body: { text: "hello" } })).status).toBe(401);
});
