import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { DeploymentStatus } from "../../../src/client/index.ts";
import { artifact, World } from "./world.ts";

it("a service that loads for longer than its code says starts when its deployment gives it longer", async () => {
  await using world = await World.start();
  const settings = { env: { LOAD_MS: "3000" } };
  await world.deploy("slow", await artifact("loading"), { settings });
  const failed = await world.until("slow", ({ status }) => status === DeploymentStatus.FAILED);
  expect(failed.statusReason).toContain("the service was not ready after 1 s");
  expect(failed.statusReason).toContain("--ready-timeout gives it longer");
  const readyTimeout = durationFromMs(120_000);
  await world.client.deployments.updateDeployment({
    deployment: { name: "slow", settings: { readyTimeout } },
    updateMask: { paths: ["settings.ready_timeout"] },
  });
  const ready = await world.until("slow", ({ status }) => status === DeploymentStatus.READY);
  expect(ready.revision).toBe(1);
  expect(await world.call("slow", "/ready", { body: {} })).toMatchObject({ json: true });
});

it("a revision that does not say that it is ready does not take over, and its status says what it said", async () => {
  await using world = await World.start();
  const readyTimeout = durationFromMs(5_000);
  await world.deployed("sharded", await artifact("loading"), { settings: { readyTimeout } });
  const env = { NOT_READY: "3 of 7 shards are loaded" };
  await world.deploy("sharded", await artifact("loading"), { settings: { env, readyTimeout } });
  const failed = await world.until("sharded", ({ statusReason }) =>
    statusReason.includes("not ready"),
  );
  expect(failed.statusReason).toContain(
    "the service was not ready after 5 s: ready said 3 of 7 shards are loaded; --ready-timeout",
  );
  expect(await world.call("sharded", "/ready", { body: {} })).toMatchObject({ json: true });
});

it("a time to load of half a second is refused, and so is one of two days", async () => {
  await using world = await World.start();
  await world.deployed("echo", await artifact());
  for (const ms of [500, 2 * 86_400_000]) {
    const settings = { readyTimeout: durationFromMs(ms) };
    const update = world.client.deployments.updateDeployment({
      deployment: { name: "echo", settings },
    });
    await expect(update).rejects.toThrow("settings.ready_timeout");
  }
});
