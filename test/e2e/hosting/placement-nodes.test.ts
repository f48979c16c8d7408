import { cpSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createTesseraClient,
  DeploymentStatus,
  type TesseraClient,
} from "../../../src/client/index.ts";
import { quickTimers } from "../../quick-timers.ts";
import { newPostgres } from "../start/databases.ts";
import { Folder, type Platform, start } from "../start/platform.ts";
import { artifact, call, reasonOf, until, World } from "./world.ts";

quickTimers();

describe("two nodes, of which one has a GPU", () => {
  let world: World;
  let folder: Folder;
  let plain: Platform;
  let plainClient: TesseraClient;

  beforeAll(async () => {
    const database = await newPostgres();
    world = await World.start({ database, env: { TESSERA_LABELS: "gpu=h200" } });
    folder = new Folder();
    cpSync(world.folder.data, folder.data, { recursive: true });
    plain = await start(folder, { database });
    const { value: token } = await world.platform.createToken(world.cookie);
    plainClient = createTesseraClient({ url: plain.url, token });
  });
  afterAll(async () => {
    await plain?.[Symbol.asyncDispose]();
    await world?.[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
  });

  it("run what requires one on that node only, and both tell of its workers", async () => {
    await world.deploy("digits", await artifact(), { settings: { requires: { gpu: "*" } } });
    const isReady = ({ status, nodes }: { status: DeploymentStatus; nodes: number }) =>
      status === DeploymentStatus.READY && nodes === 2;
    const { placements, workers } = await world.until("digits", isReady);
    expect(workers).toBe(1);
    expect(placements.map(({ status }) => status).sort()).toEqual([
      DeploymentStatus.READY,
      DeploymentStatus.DEGRADED,
    ]);
    const busy = placements.find((one) => one.workers === 1)?.node;
    for (const client of [world.client, plainClient]) {
      const list = await until(
        () => client.deployments.listWorkers({ deployment: "digits" }),
        (found) => found.workers.some(({ ready }) => ready),
      );
      expect(list.workers).toMatchObject([{ node: busy, ready: true, revision: 1 }]);
    }
    const body = { text: "a" };
    expect((await world.call("digits", "/say", { body })).text).toBe("one a");
    expect(reasonOf(await call(plain, "digits", "/say", { body }))).toBe("NO_MATCHING_WORKER");
    const submitted = await call(plain, "digits", "/work/submit", { body });
    const path = `/work/get?task_id=${submitted.json.task_id}&wait=20`;
    expect((await call(plain, "digits", path)).text).toBe("one a");
  });
});
