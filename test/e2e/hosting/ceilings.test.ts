import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ArtifactIndex, writeIndex } from "../../../src/artifacts/index-file.ts";
import {
  DeploymentStatus,
  errorFacts,
  NetworkAccess,
  WorkerPlace,
} from "../../../src/client/index.ts";
import { DEFAULT_SETTINGS } from "../../../src/storage/deployment-settings.ts";
import { artifact, type DeployOptions, declaring, World } from "./world.ts";

const KIBIBYTE = 1024;
const MEBIBYTE = KIBIBYTE ** 2;

let world: World;
beforeAll(async () => {
  const limits = { workers: 1, memoryMib: 256, cpu: 0.5, processes: 4, deployments: 3 };
  const ceilings = { ...limits, retentionMs: 3_600_000, storageBytes: MEBIBYTE };
  world = await World.start({ config: { ceilings } });
});
afterAll(() => world[Symbol.asyncDispose]());

/** The reason and the message that a call is refused with. */
async function refusal(call: Promise<unknown>): Promise<[string | undefined, string]> {
  return call.then(
    () => ["ok", ""],
    (err: unknown) => [errorFacts(err)?.reason, String(err)],
  );
}

const deploy = async (name: string, options: DeployOptions) =>
  refusal(world.deploy(name, await artifact(), options));

it("a deploy beyond what the operator allows is refused, with the ceiling and its flag", async () => {
  for (const [settings, said] of [
    [{ maxWorkers: 2 }, /max_workers would be 2, .* allows 1 \(.*--max-workers-per-deployment\)/],
    [{ memoryMib: 257 }, /memory_mib would be 257, .* 256 \(.*--max-memory-per-worker\)/],
    [
      { retention: durationFromMs(7_200_000) },
      /settings.retention would be 7200000 ms, .* allows 3600000 ms \(.*--max-retention\)/,
    ],
    [{ cpu: 1 }, /settings.cpu would be 1, .* allows 0.5 \(.*--max-cpu-per-worker\)/],
  ] as const) {
    const [reason, message] = await deploy("beyond", { settings });
    expect(reason).toBe("LIMIT_REACHED");
    expect(message).toMatch(said);
  }
});

it("a new deployment that asks for nothing gets what the operator allows", async () => {
  await world.deployed("modest", await artifact());
  const { settings } = await world.client.deployments.getDeployment({ deployment: "modest" });
  expect(settings).toMatchObject({ minWorkers: 1, maxWorkers: 1, memoryMib: 256, cpu: 0.5 });
});

it("a service's own number of workers is lowered to it too", async () => {
  const { settings } = await world.deployed("declaring", await declaring(4));
  expect(settings).toMatchObject({ minWorkers: 1, maxWorkers: 1 });
  await world.client.deployments.deleteDeployment({ deployment: "declaring" });
});

it("an update beyond it is refused, and other updates are not", async () => {
  const update = (settings: object) =>
    refusal(
      world.client.deployments.updateDeployment({ deployment: { name: "modest", settings } }),
    );
  expect((await update({ maxWorkers: 3 }))[0]).toBe("LIMIT_REACHED");
  expect((await update({ memoryMib: 1_024 }))[0]).toBe("LIMIT_REACHED");
  expect(await update({ processes: 5 })).toEqual([
    "LIMIT_REACHED",
    expect.stringMatching(/settings.processes would be 5, .* 4 \(.*--max-processes-per-worker\)/),
  ]);
  expect((await update({ memoryMib: 200 }))[0]).toBe("ok");
});

it("results are kept as the submit, the deployment or the code says, within what the operator allows", async () => {
  const call = { deployment: "acme/modest", endpoint: "work" };
  const body = { contentType: "application/json", data: Buffer.from('{"text":"kept"}') };
  const { tasks } = await world.callerClient();
  /** For how many seconds a task is kept after its end. */
  const kept = async (more: object = {}): Promise<number> => {
    const input = { case: "body", value: body } as const;
    const wait = durationFromMs(20_000);
    const { task } = await tasks.submitTask({ ...call, input, wait, ...more });
    expect(task?.finishedAt).toBeDefined();
    return Number(task?.expiresAt?.seconds) - Number(task?.finishedAt?.seconds);
  };
  // Its code says 24 hours.
  expect(await kept()).toBe(3_600);
  expect(await kept({ retention: durationFromMs(90_000) })).toBe(90);
  const update = (retentionMs: number) =>
    world.client.deployments.updateDeployment({
      deployment: { name: "modest", settings: { retention: durationFromMs(retentionMs) } },
    });
  await update(600_000);
  await expect.poll(() => kept()).toBe(600);
  expect(await kept({ retention: durationFromMs(3_600_000) })).toBe(3_600);
  for (const retention of [durationFromMs(3_601_000), durationFromMs(500)]) {
    const [reason, message] = await refusal(kept({ retention }));
    expect(reason).toBe("REQUEST_INVALID");
    expect(message).toContain("retention must be from 1 to 3600 seconds");
  }
  expect((await refusal(update(500)))[0]).toBe("REQUEST_INVALID");
  await update(0);
  await expect.poll(() => kept()).toBe(3_600);
}, 60_000);

it("an organization has no more deployments than the operator allows", async () => {
  const { settings } = await world.client.deployments.createDeployment({ name: "second" });
  const { queueTimeMs, retentionMs, readyTimeoutMs, ...defaults } = DEFAULT_SETTINGS;
  expect(settings).toMatchObject({
    ...defaults,
    network: { access: NetworkAccess.OPEN, hosts: [] },
    place: WorkerPlace.ANY,
  });
  expect(settings?.queueTime && durationMs(settings.queueTime)).toBe(queueTimeMs);
  expect(settings?.retention && durationMs(settings.retention)).toBe(retentionMs);
  expect(settings?.readyTimeout && durationMs(settings.readyTimeout)).toBe(readyTimeoutMs);
  await world.client.deployments.createDeployment({ name: "third" });
  const [reason, message] = await deploy("fourth", {});
  expect(reason).toBe("LIMIT_REACHED");
  expect(message).toMatch(/has 3 deployments, .*--max-deployments/);
});

it("variables and secrets together are bounded by what a process can be started with", async () => {
  const large = "x".repeat(15 * KIBIBYTE);
  const env = { ONE: large, TWO: large };
  const first = { settings: { env }, secrets: { KEY: large, OTHER_KEY: large } };
  expect((await deploy("second", first))[0]).toBe("ok");
  await world.until("second", ({ status }) => status === DeploymentStatus.READY);

  const [reason, message] = await deploy("second", { secrets: { THIRD_KEY: large } });
  expect(reason).toBe("LIMIT_REACHED");
  expect(message).toMatch(/would take \d+ bytes together, and 65536 is the limit/);
  const update = (variables: Record<string, string>) =>
    refusal(
      world.client.deployments.updateDeployment({
        deployment: { name: "second", settings: { env: variables } },
      }),
    );
  expect((await update({ ...env, MORE: large }))[0]).toBe("LIMIT_REACHED");
  expect((await update({ SMALL: "1" }))[0]).toBe("ok");
  expect((await deploy("second", { secrets: { THIRD_KEY: large } }))[0]).toBe("ok");
  const replaced = { secrets: { KEY: "short" }, removeSecrets: ["OTHER_KEY"] };
  expect((await deploy("second", { ...replaced, settings: { env } }))[0]).toBe("ok");
});

it("an organization stores no more than the operator allows, and reads by what", async () => {
  const { usedBytes, limitBytes, unusedBytes, deployments } =
    await world.client.organizations.getStorageUse({});
  expect(Number(limitBytes)).toBe(MEBIBYTE);
  expect(deployments.map(({ deployment }) => deployment).sort()).toEqual(["modest", "second"]);
  const echo = await artifact();
  const size = echo.index.files.reduce((sum, file) => sum + file.size, 0);
  // Both have the same files, which are stored once.
  expect(deployments.map(({ bytes }) => Number(bytes))).toEqual([size, size]);
  expect(Number(usedBytes)).toBe(size);
  expect(Number(unusedBytes)).toBe(0);

  const usedBytesNow = async () =>
    Number((await world.client.organizations.getStorageUse({})).usedBytes);
  const { deployments: client } = world.client;
  async function* upload() {
    const header = { sha256: "a".repeat(64), sizeBytes: BigInt(MEBIBYTE) };
    yield { part: { case: "header" as const, value: header } };
  }
  const [reason, message] = await refusal(client.uploadFile(upload()));
  expect(reason).toBe("LIMIT_REACHED");
  expect(message).toMatch(/larger than 1\.0 MiB together, .*--max-organization-storage/);

  // What is broken off counts for nothing, long before anybody sweeps.
  const half = Buffer.alloc(MEBIBYTE / 4);
  const broken = new AbortController();
  async function* breakingOff() {
    const header = { sha256: "b".repeat(64), sizeBytes: BigInt(MEBIBYTE / 2) };
    yield { part: { case: "header" as const, value: header } };
    yield { part: { case: "chunk" as const, value: half } };
    await expect.poll(usedBytesNow).toBe(size + MEBIBYTE / 2);
    broken.abort();
  }
  const [brokenOff] = await refusal(client.uploadFile(breakingOff(), { signal: broken.signal }));
  expect(brokenOff).not.toBe("ok");
  await expect.poll(usedBytesNow).toBe(size);

  // One content at many paths takes its space once there, and each time on a node.
  const [file] = echo.index.files;
  const copies = Array.from({ length: 2_000 }, (_, at) => ({ ...file, path: `copy-${at}.js` }));
  const index = { ...echo.index, files: [...echo.index.files, ...copies] } as ArtifactIndex;
  const bytes = Buffer.from(writeIndex(index));
  const [again, why] = await refusal(client.createRevision({ deployment: "second", index: bytes }));
  expect(again).toBe("LIMIT_REACHED");
  expect(why).toMatch(/the files of the artifact have [\d.]+ MiB together, .*leave out/);
});
