import { readFile } from "node:fs/promises";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { cookieOf, PASSWORD } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const ADMIN = "ada@example.com";
/** Another revision of the service. */
const REVISED = Object.fromEntries([['VERSION = "one"', 'VERSION = "two"']]);
const SOURCE = {
  commit: "8f3c2a41d7e64b0f9a1c5d2e8b7a6f3e4d5c6b7a",
  branch: "faster",
  message: "Say two",
  dirty: false,
};
const MEMBER = "grace@example.com";

describe.skipIf(skipped)(`deployments and people in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("echo", await artifact());
    await world.deployed("echo", await artifact("echo", REVISED), { source: SOURCE });
    const invited = await world.platform.call(
      "/api/v1/members:invite",
      { email: MEMBER },
      world.cookie,
    );
    const [, code] = String(invited.json.url).split("#code=");
    cookieOf(
      await world.platform.call("/api/v1/auth:acceptInvitation", {
        invitation_code: code,
        password: PASSWORD,
      }),
    );
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  it("are listed with the way to each and to the next deploy, by keyboard", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme/deployments");
    await person.heading("Deployments");
    // The keys of all tables.
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await person.heading("echo");
    await page.goBack();
    await page.getByRole("row", { name: /^echo/ }).getByText("min 1, max").waitFor();
    await page.getByRole("button", { name: "Deploy" }).press("Enter");
    await page.getByText("npx tessera-platform deploy service.ts").waitFor();
    await person.isSound();
  });

  it("are found with the palette, stopped and started", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/");
    await person.heading("acme");
    await page.keyboard.press("Control+k");
    await page
      .getByRole("combobox", { name: "Search pages, endpoints, tasks and actions" })
      .fill("ech");
    await page.getByRole("option", { name: "echo deployment" }).waitFor();
    await person.isSound();
    await page.keyboard.press("Enter");
    await person.heading("echo");
    await person.press("More actions for echo");
    await page.getByRole("menuitem", { name: "Stop" }).press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
    const state = page.locator(".page-description");
    await state.getByText("stopped", { exact: true }).waitFor();
    await person.press("Start");
    await state.getByText("ready", { exact: true }).waitFor();
  });

  it("have endpoints that are paused and resumed, also those that are gone, by keyboard", async () => {
    const { deployments } = world.client;
    await deployments.pauseEndpoint({ deployment: "echo", endpoint: "work" });
    await world.deployed("echo", await artifact("echo", { "work: task(": "worked: task(" }));
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme/deployments/echo");
    const rows = page.locator(".endpoint-rows > li");
    await rows.filter({ hasText: "not in the newest revision" }).getByText("paused").waitFor();
    await page.getByRole("button", { name: /^Pause.*worked$/ }).press("Enter");
    await rows
      .filter({ hasText: /^worked/ })
      .getByText(`by ${ADMIN}`)
      .waitFor();
    await person.isSound();
    for (const endpoint of ["work", "worked"]) {
      await page
        .getByRole("button", { name: new RegExp(`^Resume.*: ${endpoint}$`) })
        .press("Enter");
      await page.getByText(`${endpoint} is resumed`).waitFor();
    }
    await page.getByRole("button", { name: /^Pause.*worked$/ }).waitFor();
    await expect.poll(() => rows.getByText("paused", { exact: true }).count()).toBe(0);
    await world.deployed("echo", await artifact("echo", REVISED), { source: SOURCE });
  });

  it("are set going by first steps, with ticks for those that are done", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme");
    const steps = page.getByRole("region", { name: "First steps" });
    await steps.getByText(/^Left: Call it/).press("Enter");
    await steps.getByRole("heading", { name: /^Deploy it \(done\)$/ }).waitFor();
    await steps.getByRole("link", { name: "Open its playground" }).waitFor();
    await person.isSound();
    await page.keyboard.press("Control+k");
    await page
      .getByRole("combobox", { name: "Search pages, endpoints, tasks and actions" })
      .fill("dark");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
    await page.keyboard.press("Control+k");
    await page
      .getByRole("combobox", { name: "Search pages, endpoints, tasks and actions" })
      .fill("echo/say");
    await page.getByRole("option", { name: "echo/say endpoint" }).waitFor();
    await page.keyboard.press("Enter");
    await person.heading("echo: playground");
    expect(new URL(page.url()).hash).toBe("#/say");
    await person.isSound();
  });

  it("are called in their playground, with the session and without a token", async () => {
    await world.deployed("closed", await artifact(), { authorization: true });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: MEMBER });
    const { page } = person;
    await person.go("/o/acme/deployments/closed/playground");
    await person.heading("closed: playground");
    await page.getByLabel("text", { exact: true }).fill("hello from the console");
    await person.press("Call");
    await page
      .getByText("two hello from the console")
      .or(page.getByText("one hello from the console"))
      .first()
      .waitFor();
    const command = await page.locator(".snippets code").textContent();
    expect(command).toContain(
      `curl http://closed.acme.apps.localhost:${world.platform.started.port}/say`,
    );
    expect(command).toContain('-H "authorization: Bearer $TESSERA_TOKEN"');
    await person.isSound();
    await world.client.deployments.deleteDeployment({ deployment: "closed" });
  });

  it("show in charts, and in tables, what was measured of them", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme/deployments/echo/metrics?range=1h");
    await world.call("echo", "/say", { body: { text: "counted" } });
    const calls = page.getByRole("region", { name: "Calls", exact: true });
    await calls.locator("canvas").waitFor({ timeout: 30_000 });
    await expect
      .poll(() => calls.getByRole("cell").allTextContents(), { timeout: 30_000 })
      .toContainEqual(expect.stringMatching(/^[1-9]\d*\/min$/));
    await person.isSound();
    await person.picture("metrics");
    await page.getByRole("link", { name: "Last 7 d" }).click();
    await page.locator('[aria-label="Time range"] a[aria-current]', { hasText: "7 d" }).waitFor();
    expect(new URL(page.url()).search).toBe("?range=7d");
    await page.goBack();
    const plot = calls.locator(".u-over");
    const { x = 0, y = 0, width = 0 } = (await plot.boundingBox()) ?? {};
    await page.mouse.move(x + width / 4, y + 50);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + 50, { steps: 4 });
    await page.mouse.up();
    const lengthMs = () => {
      const [from, to] = ["from", "to"].map((name) => new URL(page.url()).searchParams.get(name));
      return Number(to) - Number(from);
    };
    await expect.poll(() => Math.round(lengthMs() / 60_000)).toBe(15);
    await page.getByRole("button", { name: "Zoom out" }).press("Enter");
    await expect.poll(() => Math.round(lengthMs() / 60_000)).toBeGreaterThan(20);
    await calls.getByText("No calls in this time.").waitFor();
    await person.isSound();
    await person.go(`/o/acme/deployments/echo/metrics?from=1000&to=2000000`);
    await page.getByText("metrics are kept for 7 days").first().waitFor();
    const hour = page.getByRole("heading", { name: "Last hour", exact: true });
    for (const path of ["/o/acme/deployments/echo", "/o/acme"]) {
      await person.go(path);
      await hour.waitFor();
      await calls.locator("canvas").waitFor();
      await person.isSound({ answers: [400] });
    }
    await person.go("/o/acme/deployments/echo");
    await page.getByText(/^[1-9]\d* calls? in the last hour, none failed$/).waitFor();
    const say = page.locator(".endpoint-rows > li").filter({ hasText: "POST /say" });
    await say.getByText(/^[1-9]\d* calls?none failedp95 \d/).waitFor();
    await person.go("/o/acme");
    await calls.locator("canvas").waitFor();
    await person.picture("overview-charts");
  });

  it("say why calls of them failed, and lead to what explains it", async () => {
    expect((await world.call("echo", "/say", { body: { text: 7 } })).status).toBe(400);
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme/deployments/echo");
    const causes = page.getByRole("region", { name: "Why calls failed" });
    const cause = causes.getByRole("listitem").filter({ hasText: "Invalid arguments" });
    await cause.getByText(/^1 call of say, [\d.]+ % of its calls$/).waitFor({ timeout: 30_000 });
    await person.isSound();
    await cause.getByRole("link", { name: "What it takes" }).click();
    await person.heading("echo: playground");
    expect(new URL(page.url()).hash).toBe("#/say");
  });

  it("are in the audit log, which is filtered by its address and saved as CSV", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme/audit?action=deployment&subject=echo");
    const event = (text: string) => page.getByRole("rowheader").filter({ hasText: text });
    await event("Deployed echo, revision 2").waitFor();
    expect(await event("Created the token").count()).toBe(0);
    await page.getByRole("button", { name: /^Deployed echo, revision 2/ }).press("Enter");
    await page.getByRole("definition").getByText("deployment.deploy").waitFor();
    await person.isSoundInAllWindows("audit");
    await page.setViewportSize({ width: 1280, height: 800 });
    const [saved] = await Promise.all([page.waitForEvent("download"), person.press("Export CSV")]);
    const text = await readFile(await saved.path(), "utf8");
    expect(text).toMatch(/^time,action,actor,.*\r\n.*"deployment\./);
    await page.getByLabel("Person or token").fill("nobody@example.com");
    await page.keyboard.press("Enter");
    await page.getByText("No events match").waitFor();
    expect(new URL(page.url()).search).toBe(
      "?actor=nobody%40example.com&action=deployment&subject=echo",
    );
    await page.getByLabel("Person or token").fill("");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Last 1 h" }).click();
    await event("Deployed echo, revision 1").waitFor();
    await page.getByLabel("Action").selectOption("API tokens");
    await page.getByText("No events match").waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      action: "token",
      subject: "echo",
      range: "1h",
    });
    await person.isSound();
  });

  it("have filters behind one button on a phone, with those that are set as chips", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: ADMIN,
      viewport: { width: 390, height: 844 },
    });
    const { page } = person;
    const query = () => Object.fromEntries(new URL(page.url()).searchParams);
    const opener = page.locator(".filters-open");
    const chips = page.getByRole("list", { name: "Chosen filters" }).getByRole("button");
    const chip = (text: string) => chips.filter({ hasText: text });
    /** Opens the filters and closes them. */
    const opens = async (field: Locator) => {
      expect(await field.isVisible()).toBe(false);
      await opener.press("Enter");
      await field.waitFor();
      await expect.poll(() => chips.count()).toBe(0);
      await person.isSound();
      await opener.press("Enter");
      await field.waitFor({ state: "hidden" });
    };

    await person.go("/o/acme/tasks?since=1h&deployment=echo&error=none");
    await chip("Error: none").waitFor();
    expect(await opener.textContent()).toBe("Filters (3)");
    await chip("Error: none").press("Enter");
    await chip("Error: none").waitFor({ state: "detached" });
    // The focus stays among the filters.
    await opener.and(page.locator(":focus")).waitFor();
    await opens(page.getByLabel("Deployment"));
    await chip("echo").click();
    await chip("Last hour").click();
    await expect.poll(query).toEqual({});
    expect(await opener.textContent()).toBe("Filters");

    await person.go("/o/acme/audit?action=deployment&range=24h");
    await chip("Deployments").waitFor();
    const ranges = page.locator('[aria-label="Time range"] a[aria-current]');
    expect(await ranges.allTextContents()).toEqual(["24 h"]);
    await opens(page.getByLabel("Action"));
    await chip("Last 24 h").click();
    await expect.poll(query).toEqual({ action: "deployment" });

    await person.go("/o/acme/deployments/echo/log?level=error&range=1h");
    await chip("Last 1 h").waitFor();
    await opens(page.getByRole("group", { name: "Least level" }));
    await chip("Errors").click();
    await expect.poll(query).toEqual({ range: "1h" });

    await person.go("/o/acme/deployments/echo/metrics?range=6h");
    await page.getByRole("button", { name: "Time range: Last 6 h" }).waitFor();
    await opens(page.getByRole("link", { name: "Last 7 d" }));
  });

  it("are rolled back to a revision", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: ADMIN });
    const { page } = person;
    await person.go("/o/acme/deployments/echo/revisions");
    // The newest is open by itself, until it is closed.
    const newest = page.getByRole("row", { name: /^r4/ }).getByRole("button", { name: /^r4/ });
    const question = page.getByRole("heading", { name: "What r4 changed" });
    await question.waitFor();
    await newest.click();
    await question.waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("?open=");
    await page.reload();
    await newest.click();
    await question.waitFor();
    await page.getByLabel("Compared with").selectOption("2");
    const second = page.getByRole("row", { name: /^r2/ });
    await second.getByText("Say two").waitFor();
    await second.getByText("8f3c2a41 on faster").waitFor();
    expect(await second.textContent()).toMatch(/\d (?:ms|s)/);
    await second.getByRole("button", { name: /^r2/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("definition").getByText(SOURCE.commit).waitFor();
    const lines = page.getByRole("region", { name: "Changes of service.js", exact: true });
    await lines.getByText('VERSION = "one"').waitFor();
    await lines.getByText('VERSION = "two"').waitFor();
    expect(await lines.getByText("lines the same").count()).toBeGreaterThan(0);
    await page.getByRole("heading", { name: "The log of its roll-out" }).waitFor();
    await person.isSoundInAllWindows("comparison");
    await page.setViewportSize({ width: 1280, height: 800 });
    await lines.getByRole("button", { name: "lines the same" }).first().focus();
    await page.keyboard.press("Enter");
    await lines.getByText("// node_modules/zod").first().waitFor();
    // It is compared with the one before it, whatever the row before was compared with.
    await page.getByRole("heading", { name: "What r2 changed" }).waitFor();
    expect(new URL(page.url()).search).toBe("?open=2");
    expect(await page.getByLabel("Compared with").inputValue()).toBe("1");
    await page.getByLabel("Compared with").selectOption("2");
    await lines.waitFor({ state: "detached" });
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      open: "2",
      base: "2",
    });
    await page.getByRole("button", { name: "Roll back to r1" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("of the code become").waitFor();
    await dialog.getByText("worker will be replaced, and no call fails").waitFor();
    await dialog.getByRole("button", { name: "Roll back" }).click();
    await page.getByText("brought back r1").waitFor();
  });

  it("lead who has no session to the sign-in, and back", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform);
    await person.go("/o/acme/deployments/echo?from=a-link");
    await person.heading("Sign in");
    await person.fill("E-mail address", MEMBER);
    await person.fill("Password", PASSWORD);
    await person.press("Sign in");
    await person.heading("echo");
    expect(new URL(person.page.url()).pathname).toBe("/o/acme/deployments/echo");
  });
});
