/** Models of deployments: fetched by the platform once, pinned, and brought to each machine once. */
import { randomBytes } from "node:crypto";
import { globSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ArtifactIndex, withModels } from "../../../src/artifacts/index-file.ts";
import { errorFacts, ModelState } from "../../../src/client/index.ts";
import { FakeHub } from "../../hosting/models/hub.ts";
import { hasJoined, startAgent, workerToken } from "../workers/agent-program.ts";
import { artifact, until, World } from "./world.ts";

const MEBIBYTE = 1024 ** 2;
/** Of two parts and a bit. */
const WEIGHTS = randomBytes(130 * MEBIBYTE);
const HEAD = WEIGHTS.subarray(0, 4).toString("hex");
const OTHER_WEIGHTS = randomBytes(3 * MEBIBYTE);

let hub: FakeHub;
let world: World;
let commit: string;
beforeAll(async () => {
  hub = await FakeHub.start({});
  commit = hub.commit({ "config.json": '{"layers":3}', "weights.safetensors": WEIGHTS });
  world = await World.start({ config: { modelHub: hub.url } });
}, 60_000);
afterAll(async () => {
  await world?.[Symbol.asyncDispose]();
  await hub?.[Symbol.asyncDispose]();
});

/** Imports what the hub has now, as a deploy does. */
async function imported() {
  const { models } = world.client;
  const begun = await models.importModel({ source: "hf://acme/reader" });
  const { versions } = await until(
    () => models.getModel({ model: begun.model }),
    (model) =>
      model.versions.some(
        ({ version, state }) => version === begun.version && state !== ModelState.IMPORTING,
      ),
  );
  const found = versions.find(({ version }) => version === begun.version);
  expect(found).toMatchObject({ state: ModelState.READY, reason: "" });
  if (found === undefined) {
    throw new Error("the version is gone");
  }
  return found;
}

/** The artifact of `services/weighing.ts` with a version of its model. */
async function weighing(
  { model, version, digest, sizeBytes, repository, commit }: Awaited<ReturnType<typeof imported>>,
  replacements: Readonly<Record<string, string>> = {},
) {
  const built = await artifact("weighing", replacements);
  const pinned = { name: "reader", model, version, digest, size: Number(sizeBytes) };
  return { ...built, index: withModels(built.index, [{ ...pinned, repository, commit }]) };
}

const weigh = (name: string) => world.call(name, "/weigh", { body: {} });

it("workers find the model that their deploy has pinned, also as the libraries of the hub do", async () => {
  const first = await imported();
  await world.deployed("first", await weighing(first));
  expect(await weigh("first")).toMatchObject({ json: ["one", WEIGHTS.length, HEAD] });
  const { json: said } = await world.call("first", "/hub", { body: {} });
  expect(said).toEqual(["1", commit, '{"layers":3}', expect.stringContaining(first.digest)]);
  const { json: written } = await world.call("first", "/write", { body: { path: "weights.bin" } });
  expect(written).toMatch(/EROFS|ERR_ACCESS_DENIED/);
}, 60_000);

it("a second deployment and another revision of the code bring nothing again", async () => {
  const first = await imported();
  const { served } = hub;
  await world.deployed("second", await weighing(first));
  const revised = { 'VERSION = "one"': 'VERSION = "two"' };
  const beganMs = performance.now();
  await world.deployed("first", await weighing(first, revised));
  expect(performance.now() - beganMs).toBeLessThan(10_000);
  expect(await weigh("first")).toMatchObject({ json: ["two", WEIGHTS.length, HEAD] });
  expect(hub.served).toBe(served);
  const models = globSync(join(world.folder.path, "**/models/*/weights.safetensors"));
  expect(models).toEqual([expect.stringContaining(first.digest)]);
}, 60_000);

it("a rollback brings the weights of its time back", async () => {
  hub.commit({ "config.json": "{}", "weights.safetensors": OTHER_WEIGHTS });
  const moved = await imported();
  expect(moved.version).toBe(2);
  await world.deployed("first", await weighing(moved));
  expect(await weigh("first")).toMatchObject({
    json: ["one", OTHER_WEIGHTS.length, expect.any(String)],
  });
  const { targetRevision } = await world.client.deployments.rollBackDeployment({
    deployment: "first",
  });
  await world.until("first", ({ revision }) => revision === targetRevision);
  expect(await weigh("first")).toMatchObject({ json: ["two", WEIGHTS.length, HEAD] });
}, 60_000);

it("what a revision has is not deleted, and its deployments are named", async () => {
  const { models } = world.client;
  const { versions } = await models.getModel({ model: "reader" });
  expect(versions.map(({ version, deployments }) => [version, deployments])).toEqual([
    [2, ["first"]],
    [1, ["first", "second"]],
  ]);
  const refused = await models.deleteModel({ model: "reader", version: 1 }).catch(errorFacts);
  expect(refused).toMatchObject({ reason: "MODEL_IN_USE" });
  await world.client.deployments.deleteDeployment({ deployment: "second" });
  const kept = await models.deleteModel({ model: "reader" }).catch(String);
  expect(kept).toMatch(/first/);
});

it("a revision whose models are not there, or not pinned, is refused", async () => {
  const built = await weighing(await imported());
  const [own] = built.index.models ?? [];
  const other = { ...built.index, models: [{ ...own, digest: "a".repeat(64) }] } as ArtifactIndex;
  const refusal = (index: ArtifactIndex) =>
    world.deploy("refused", { ...built, index }).then(String, errorFacts);
  expect(await refusal(other)).toMatchObject({ reason: "MODEL_NOT_FOUND" });
  const { models: _, ...unpinned } = built.index;
  expect(await refusal(unpinned)).toMatchObject({ reason: "ARTIFACT_INVALID" });
});

it("a worker that joins from another machine has the same model, from the platform", async () => {
  const first = await imported();
  const { served } = hub;
  await world.deployed("joined", await weighing(first));
  const settings = { minWorkers: 0, maxWorkers: 1 };
  await world.client.deployments.updateDeployment({ deployment: { name: "joined", settings } });
  const token = await workerToken(world, ["joined"]);
  await using agent = startAgent(world, { token, deployment: "joined" });
  await hasJoined(agent);
  const { json } = await until(
    () => weigh("joined"),
    ({ status }) => status === 200,
  );
  expect(json).toEqual(["one", OTHER_WEIGHTS.length, OTHER_WEIGHTS.subarray(0, 4).toString("hex")]);
  expect(hub.served).toBe(served);
}, 60_000);
