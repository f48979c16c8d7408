import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { artifact, World } from "./world.ts";

it("a deployment keeps what its workers put into their cache, for their successors alone", async () => {
  await using world = await World.start();
  const caches = join(world.folder.data, "caches");
  const { deploymentId } = await world.deployed("mine", await artifact("remembering"));
  await world.deployed("other", await artifact("remembering"));
  const recalled = async (name: string) => (await world.call(name, "/recall", { body: {} })).json;
  await world.call("mine", "/remember", { body: { text: "kept" } });
  expect(await recalled("mine")).toBe("kept");
  expect(readFileSync(join(caches, deploymentId, "notes"), "utf8")).toBe("kept");
  // Its settings begin new workers.
  await world.client.deployments.updateDeployment({
    deployment: { name: "mine", settings: { env: { OTHER: "1" } } },
  });
  await world.until("mine", ({ placements }) => placements.length === 1);
  expect(await recalled("mine")).toBe("kept");
  expect(await recalled("other")).toBe("nothing");
  const path = join(caches, deploymentId, "notes");
  const stolen = await world.call("other", "/read", { body: { path } });
  expect(stolen.status).toBe(500);
  await world.client.deployments.deleteDeployment({ deployment: "mine" });
  await expect.poll(() => existsSync(join(caches, deploymentId))).toBe(false);
  expect(readdirSync(caches)).toHaveLength(1);
});

it("a node on which caches may have no space gives its workers none", async () => {
  await using world = await World.start({ config: { maxCacheBytes: 0 } });
  await world.deployed("mine", await artifact("remembering"));
  expect((await world.call("mine", "/recall", { body: {} })).json).toBe("nothing");
  expect(existsSync(join(world.folder.data, "caches"))).toBe(false);
});
