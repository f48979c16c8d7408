/** Deployments whose code no node has tried yet: their callers hear why, and wait for nothing. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { artifact, reasonOf, until, World } from "./world.ts";

/** On a node, where code lies among artifacts, and not while it is built. */
const onNode = (code: string) => ({
  "const VERSION": `if (import.meta.url.includes("/artifacts/")) ${code};\nconst VERSION`,
});
const SLOW = onNode("await new Promise((done) => setTimeout(done, 2_000))");
const BROKEN = onNode('throw new Error("the weights are corrupt")');

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

const body = { text: "x" };
const say = (name: string) => world.call(name, "/say", { body });
const submit = (name: string) => world.call(name, "/work/submit", { body });

/** Deploys to a deployment that is stopped, which proves nothing, and starts it. */
async function startedUntried(name: string, code: Record<string, string>, minWorkers: number) {
  const { deployments } = world.client;
  await deployments.createDeployment({ name });
  await deployments.stopDeployment({ deployment: name });
  await world.deploy(name, await artifact("echo", code), { settings: { minWorkers } });
  await until(
    () => say(name),
    (answer) => answer.text.includes("is stopped"),
  );
  await deployments.startDeployment({ deployment: name });
  // Once the node has heard of it.
  return await until(
    () => say(name),
    (answer) => !answer.text.includes("is stopped"),
  );
}

it.each([0, 1])(
  "one that was deployed while it was stopped refuses work until it has loaded, with %i workers at rest",
  async (minWorkers) => {
    const name = `slow-${minWorkers}`;
    const refused = await startedUntried(name, SLOW, minWorkers);
    expect([refused.status, reasonOf(refused)]).toEqual([503, "NO_WORKER"]);
    expect(refused.headers["retry-after"]).toBe("1");
    expect(refused.text).toContain("is starting");
    expect(reasonOf(await submit(name))).toBe("NO_WORKER");
    expect((await world.call(name, "/readyz")).status).toBe(503);
    await until(
      () => world.call(name, "/readyz"),
      ({ status }) => status === 200,
    );
    expect((await say(name)).text).toBe("one x");
  },
  60_000,
);

it("one that was deployed while it was stopped and does not load says so, whoever asks", async () => {
  await startedUntried("broken", BROKEN, 0);
  const refused = await until(
    () => say("broken"),
    (answer) => reasonOf(answer) === "DEPLOYMENT_FAILED",
  );
  expect(refused.status).toBe(503);
  expect(refused.headers["retry-after"]).toBe("5");
  expect(reasonOf(await submit("broken"))).toBe("DEPLOYMENT_FAILED");
  await world.until("broken", ({ statusReason }) =>
    statusReason.includes("the weights are corrupt"),
  );
}, 60_000);

it("one whose workers have to join refuses calls at once, with the worker that it waits for", async () => {
  await world.deploy("afar", await artifact("echo", BROKEN), {
    settings: { place: WorkerPlace.REMOTE, requires: { gpu: "*" } },
  });
  await world.until("afar", ({ status }) => status === DeploymentStatus.DEGRADED);
  const refused = await say("afar");
  expect([refused.status, reasonOf(refused)]).toEqual([503, "NO_MATCHING_WORKER"]);
  expect(refused.text).toContain("a worker with the label gpu that joins");
});
