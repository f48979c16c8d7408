import { randomBytes } from "node:crypto";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FakeHub } from "../../hosting/models/hub.ts";
import { leftOut } from "../../needed.ts";
import { World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);

describe.skipIf(skipped)(`models in the console${skipped}`, () => {
  let browser: Browser;
  let hub: FakeHub;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    hub = await FakeHub.start({ "pytorch_model.bin": randomBytes(200_000) });
    world = await World.start({ env: { TESSERA_MODEL_HUB: hub.url } });
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
    await hub?.[Symbol.asyncDispose]();
  });

  it("are shown while they are fetched and when they are ready, and deleted", async () => {
    const held = Promise.withResolvers<void>();
    hub.faults.onContent = () => held.promise;
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: "ada@example.com",
    });
    const { page } = person;
    await person.go("/o/acme/models");
    await person.heading("Models");
    await page.getByText("No models yet").waitFor();
    await person.isSound();
    await world.client.models.importModel({ source: "hf://acme/reader" });
    await person.go("/o/acme/models");
    const row = page.getByRole("row", { name: /^reader@1/ });
    await row.getByText("importing", { exact: true }).waitFor();
    await row.getByText(/^0 %/).waitFor();
    held.resolve();
    await row.getByText("ready", { exact: true }).waitFor();
    await row.getByText("may hold pickled objects").waitFor();
    await row.getByRole("cell", { name: "195 KiB" }).waitFor();
    await person.isSound();
    await row.getByRole("button", { name: "Actions for reader@1" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No models yet").waitFor();
    expect((await world.client.models.listModels({})).models).toEqual([]);
  });
});
