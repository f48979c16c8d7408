/** Pages of the console that have much to show: long logs, large arguments. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

/** Lines that a task's page keeps of an attempt. */
const MAX_TASK_LINES = 1_000;

describe.skipIf(skipped)(`much to show in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("hostile", await artifact("hostile"));
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  const submit = async (endpoint: string, body: object = {}): Promise<string> => {
    const { status, text, json } = await world.call("hostile", `/${endpoint}/submit`, { body });
    expect(status, text).toBe(202);
    return `/o/acme/deployments/hostile/tasks/${json.task_id}`;
  };

  it("is a task's log of 100,000 lines: its beginning and its end, live and afterwards", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(await submit("chatter"));
    await page.getByText("success", { exact: true }).first().waitFor({ timeout: 60_000 });
    const lines = page.getByRole("region", { name: "Lines" });
    const isBounded = async () => {
      await lines.getByText("line 100000", { exact: true }).waitFor();
      await lines.getByText("line 1", { exact: true }).waitFor();
      await lines
        .getByText(/^\d+,\d{3} lines left out$/)
        .first()
        .waitFor();
      expect(await lines.locator(".log-line").count()).toBeLessThanOrEqual(MAX_TASK_LINES);
    };
    await isBounded();
    await page.reload();
    await isBounded();
    await person.isSound();
    await page.getByRole("searchbox").fill("line 100000");
    await expect.poll(() => lines.locator(".log-line").count()).toBe(1);
  });

  it("is a task's log that says one thing again and again: once, with a count that unfolds", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(await submit("insist"));
    const lines = page.getByRole("region", { name: "Lines" }).locator(".log-line");
    await lines.getByText('no reading yet {"sensor":"south"}').waitFor();
    const count = lines.getByRole("button", { name: "× 3: equal lines" });
    expect(await lines.count()).toBe(2);
    await count.press("Enter");
    await expect.poll(() => lines.count()).toBe(4);
    await person.isSound();
    await count.press("Enter");
    await expect.poll(() => lines.count()).toBe(2);
  });

  it("is an argument of 4 MB, the most that calls take: folded, and to download", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(await submit("swallow", { text: "x".repeat(4_000_000) }));
    await page.getByRole("treeitem", { name: /^text: .* 4,000,000 characters$/ }).waitFor();
    await page.getByText("3.8 MiB").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("region", { name: "Arguments" }).getByRole("link").click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/-arguments\.json$/);
    await person.isSound();
  });
});
