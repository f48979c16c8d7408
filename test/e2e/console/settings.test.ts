/** The settings of a deployment in the console: changed, refused, and changed by two people at once. */
import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";
const PAGE = "/o/acme/deployments/tape/settings";

describe.skipIf(skipped)(`the settings of a deployment in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  const stored = async () => {
    const { json } = await world.platform.call("/api/v1/deployments/tape", undefined, world.cookie);
    return json;
  };

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("tape", await artifact("tape"), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  it("are changed by the keyboard alone, with what a change replaces", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(PAGE);
    await person.heading("tape: settings");
    await person.isSound();
    const save = page.getByRole("button", { name: "Save" });
    await page.getByText("No changes to save.").waitFor();
    expect(await save.isDisabled()).toBe(true);
    // Nothing covers a field while there is nothing to save.
    expect((await save.boundingBox())?.y).toBeGreaterThan(page.viewportSize()?.height ?? 0);
    await page.getByLabel("Maximum workers").fill("3");
    await page.getByText("no worker starts anew").waitFor();
    await page.getByLabel("Memory", { exact: true }).fill("640");
    // The file names no GPUs, and has each task kept for a day.
    const processes = page.locator(".field", { has: page.getByLabel("Processes") });
    await processes.getByText("Default: none", { exact: true }).waitFor();
    await page.getByText("Default: 1 d, from the code", { exact: true }).waitFor();
    const variables = page.getByRole("group", { name: "Variables" });
    await variables.getByLabel("Name 1").fill("MODEL");
    await variables.getByLabel("Value of MODEL").fill("small");
    await variables.getByLabel("Name 2").fill("MODEL");
    await page.getByText("MODEL is there twice.").waitFor();
    expect(await save.isDisabled()).toBe(true);
    await variables.getByLabel("Name 2").fill("QUERY");
    await variables.getByLabel("Value of QUERY").fill("a=b");
    await variables.getByLabel("Name 3").fill("GONE");
    await variables.getByRole("button", { name: "Remove GONE" }).press("Enter");
    expect(await variables.getByLabel("Name 3").evaluate((it) => it.matches(":focus"))).toBe(true);
    await page.getByText("Workers are replaced one after another").waitFor();
    await page.getByLabel("Who may call it").selectOption("Protected");
    await page.getByLabel("Network").selectOption("These hosts alone");
    await page.getByText("Write the hosts, one on a line").waitFor();
    await page.getByLabel("Hosts").fill("none.example:443");
    await page.getByText(/^5 changes\. Workers are replaced/).waitFor();
    await page.getByLabel("Memory", { exact: true }).press("Enter");
    await page.getByText("Saved the settings of tape").waitFor();
    expect(await stored()).toMatchObject({
      authorization: true,
      settings: {
        ...{ max_workers: 3, memory_mib: 640, env: { MODEL: "small", QUERY: "a=b" } },
        network: { access: "allow", hosts: ["none.example:443"] },
      },
    });
    await page.getByText("No changes to save.").waitFor();
    expect(await save.isDisabled()).toBe(true);
    await person.isSound();
    await person.picture("deployment-settings");
  });

  it("have the way to their sections beside them, and above them on a phone", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(PAGE);
    const list = page.getByRole("navigation", { name: "Sections" });
    await list.getByRole("link", { name: "Secrets" }).click();
    await page.waitForURL("**/settings#secrets");
    await page.getByRole("heading", { name: "Secrets" }).waitFor();
    const marked = list.locator("[aria-current]");
    await expect.poll(() => marked.textContent()).toBe("Secrets");
    await page.evaluate("scrollTo(0, 0)");
    await expect.poll(() => marked.textContent()).toBe("Callers");
    await page.setViewportSize({ width: 390, height: 844 });
    await list.waitFor({ state: "hidden" });
    await page.getByRole("combobox", { name: "Sections" }).selectOption("History");
    await page.waitForURL("**/settings#history");
    await expect
      .poll(() => page.getByRole("combobox", { name: "Sections" }).inputValue())
      .toBe("history");
    await person.isSound();
  });

  it("say beside the field what is wrong with it, and keep what was typed", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(PAGE);
    await page.getByLabel("Queue time").fill("soon");
    await page.getByText("Write a duration such as 500 ms").waitFor();
    expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await page.getByLabel("Queue time").fill("2h");
    await person.press("Save");
    const field = page.locator(".field", { has: page.getByLabel("Queue time") });
    await field.locator(".field-error").waitFor();
    expect(await page.getByLabel("Queue time").inputValue()).toBe("2h");
    await person.isSound({ answers: [400] });
    await person.press("Discard");
    await page.getByRole("button", { name: "Discard" }).waitFor({ state: "detached" });
    expect(await page.getByLabel("Queue time").inputValue()).toBe("1 s");
  });

  it("have secrets that are set, set anew and deleted, with what starts anew, and a history", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(PAGE);
    await page.getByRole("button", { name: "Set secret" }).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("NODE_OPTIONS");
    await dialog.getByLabel("Value").fill("sesame");
    await dialog.getByText("worker is replaced, and no call fails").waitFor();
    await dialog.getByRole("button", { name: "Set", exact: true }).click();
    await dialog.getByText("so NODE_* may not be set").waitFor();
    await dialog.getByLabel("Name").fill("API_KEY");
    await person.isSound({ answers: [400] });
    await dialog.getByLabel("Name").press("Enter");
    await page.getByText("API_KEY is set").waitFor();
    expect((await stored()).settings).toMatchObject({ secret_names: ["API_KEY"] });
    expect(JSON.stringify(await stored())).not.toContain("sesame");

    const history = page.getByRole("region", { name: "History" });
    await history.getByText("Set secrets API_KEY").waitFor();
    await person.isSoundInAllWindows("deployment-secrets", { answers: [400] });
    await page.setViewportSize({ width: 1280, height: 800 });

    await person.press("Actions for API_KEY");
    await page.getByRole("menuitem", { name: "Set anew" }).click();
    await dialog.getByLabel("Value").fill("barley");
    // Somebody else is first.
    const { version } = await world.client.deployments.updateSecrets({
      deployment: "tape",
      secrets: { API_KEY: "rye" },
    });
    await dialog.getByRole("button", { name: "Set", exact: true }).click();
    await dialog.getByText("Somebody else has changed this deployment meanwhile").waitFor();
    await dialog.getByRole("button", { name: "Set", exact: true }).click();
    await page.getByText("API_KEY is set").last().waitFor();
    await expect.poll(async () => (await stored()).version).toBe(version + 1);

    await person.press("Actions for API_KEY");
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("API_KEY is deleted").waitFor();
    await history.getByText("Deleted secrets API_KEY").waitFor();
  });

  it("of two people who change them at once both are told, and neither change is lost", async () => {
    await using one = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await using other = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await one.go(PAGE);
    await other.go(PAGE);
    await one.page.getByLabel("Processors").fill("2");
    await other.page.getByLabel("Memory", { exact: true }).fill("700");
    await other.press("Save");
    await other.page.getByText("Saved the settings of tape").waitFor();
    await one.page.getByText("Somebody else has saved other settings meanwhile").waitFor();
    expect(await one.page.getByLabel("Memory", { exact: true }).inputValue()).toBe("700 MiB");
    await one.press("Save");
    await one.page.getByText("Saved the settings of tape").waitFor();
    expect((await stored()).settings).toMatchObject({ memory_mib: 700, cpu: 2 });
  });

  it("that somebody else saves at the same moment are told of, and what was typed stays", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(PAGE);
    await page.getByLabel("Maximum workers").fill("5");
    // Somebody else is first, when the request is on its way already.
    const first = async (route: Route) => {
      await world.client.deployments.updateDeployment({
        deployment: { name: "tape", settings: { queueTime: { seconds: 3n } } },
        updateMask: { paths: ["settings.queue_time"] },
      });
      await route.continue();
    };
    await page.route("**/UpdateDeployment", first, { times: 1 });
    await person.press("Save");
    await page.getByText("Somebody else has saved other settings meanwhile").waitFor();
    expect(await page.getByLabel("Queue time").inputValue()).toBe("3 s");
    expect(await page.getByLabel("Maximum workers").inputValue()).toBe("5");
    await person.isSound({ answers: [409] });
    await person.picture("deployment-settings-conflict");
    // What is refused for another reason is told beside it.
    const refusal = { status: 503, json: { code: "unavailable", message: "not now" } };
    await page.route("**/UpdateDeployment", (route) => route.fulfill(refusal), { times: 1 });
    await person.press("Save");
    await page.getByText("not now").waitFor();
    await person.press("Save");
    await page.getByText("Saved the settings of tape").waitFor();
    expect((await stored()).settings).toMatchObject({ max_workers: 5, queue_time: "3s" });
  });
});
