/** The page of a deployment's log: what it follows, how it is searched, and what it costs. */
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";
/** How long the page waits for a word of the server. */
const MAX_SILENCE_MS = 46_000;
const LOG = "/o/acme/deployments/echo/log";

/** The height of a line. */
const ROW_PX = 24;

/** Lines that are in the document at once: those in view, and a few. */
const MAX_ROWS = 150;

describe.skipIf(skipped)(`the log of a deployment in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("echo", await artifact());
    await world.deployed("hostile", await artifact("hostile"));
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  const say = async (text: string): Promise<void> => {
    expect((await world.call("echo", "/say", { body: { text } })).status).toBe(200);
  };
  const list = (page: Page) => page.getByRole("region", { name: "Lines" });
  const row = (page: Page, text: string) => list(page).locator(".log-row", { hasText: text });
  const saved = async (page: Page, name: string): Promise<string> => {
    await page.getByRole("button", { name: "Download" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name }).click(),
    ]);
    return readFile(await download.path(), "utf8");
  };
  const addressOf = (page: Page) => new URL(page.url()).searchParams;
  /** How far the view is from the end of the list. */
  const fromEnd = (page: Page) =>
    list(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);

  it("opens at its end and stays there; paused, it stands still and counts what comes", async () => {
    for (let number = 1; number <= 60; number += 1) {
      await say(`number ${number}.`);
    }
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(LOG);
    await row(page, "number 60.").waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    expect(await fromEnd(page)).toBeLessThan(4);
    // The first line in view is whole.
    expect(await list(page).evaluate((box, px) => box.scrollTop % px, ROW_PX)).toBe(0);
    await say("written while you look");
    await row(page, "written while you look").waitFor();
    await expect.poll(() => fromEnd(page)).toBeLessThan(4);
    await person.isSound();
    await list(page).hover();
    await page.mouse.wheel(0, -300);
    await page.getByText("paused", { exact: true }).waitFor();
    const shown = await list(page).locator(".log-row").first().textContent();
    await say("one more");
    await say("and another");
    await page.getByRole("button", { name: "2 new lines" }).waitFor();
    expect(await list(page).locator(".log-row").first().textContent()).toBe(shown);
    await person.isSound();
    await page.keyboard.press("f");
    await row(page, "and another").waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: /new line/ }).count()).toBe(0);
    await page.keyboard.press("f");
    await page.getByText("paused", { exact: true }).waitFor();
  });

  it("is searched while somebody types, with what is found marked and in the address", async () => {
    await say("found While you look");
    await say("not this one");
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(LOG);
    await row(page, "not this one").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("WHILE you look");
    await page.locator("mark").getByText("While you look", { exact: true }).waitFor();
    await row(page, "not this one").waitFor({ state: "detached" });
    await expect.poll(() => addressOf(page).get("search")).toBe("WHILE you look");
    await say("one more, while you look");
    await row(page, "one more,").waitFor();
    await person.isSound();
    await page.reload();
    await row(page, "one more,").waitFor();
    expect(await row(page, "not this one").count()).toBe(0);
    await page.getByRole("button", { name: "Errors", exact: true }).click();
    await page.getByText("No lines match.").waitFor();
    expect(addressOf(page).get("level")).toBe("error");
    await page.keyboard.press("Escape");
    await row(page, "not this one").waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  it("has levels with their numbers, lines that open, and the way to a task, by keyboard alone", async () => {
    const { json } = await world.call("hostile", "/finish/submit", { body: {} });
    const id = String(json.task_id);
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/deployments/hostile/log");
    await page.getByRole("button", { name: "Errors", exact: true }).press("Enter");
    await expect.poll(() => list(page).locator(".log-row").count()).toBe(1);
    await page.keyboard.press("k");
    await list(page).locator(".is-current").waitFor();
    await page.keyboard.press("Enter");
    const details = page.locator(".log-details");
    await details.getByText(id, { exact: true }).waitFor();
    await person.isSoundInAllWindows("log-open");
    await page.keyboard.press("Escape");
    await details.waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Only this task" }).press("Enter");
    await expect.poll(() => addressOf(page).get("task")).toBe(id);
    await page.getByText(", 1 error").waitFor();
    await page.getByRole("button", { name: `Task ${id.slice(-6)}` }).click();
    await expect.poll(() => addressOf(page).get("task")).toBeNull();
    await row(page, "warn").getByRole("link", { name: /^Task/ }).first().click();
    await person.heading("Task of finish");
  });

  it("has bars over time that narrow it, and the way back to now", async () => {
    await say("in the newest bar");
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(LOG);
    await row(page, "in the newest bar").waitFor();
    const bars = page.getByRole("group", { name: "Lines over time" });
    await bars
      .getByRole("button", { name: /[1-9]\d* lines?/ })
      .last()
      .press("Enter");
    await page.getByRole("button", { name: "Back to now" }).waitFor();
    const [from, to] = ["from", "to"].map((name) => Number(addressOf(page).get(name)));
    expect((to ?? 0) - (from ?? 0)).toBeGreaterThanOrEqual(1_000);
    await row(page, "in the newest bar").waitFor();
    await person.isSound();
    await page.getByRole("button", { name: "Back to now" }).click();
    await page.getByText("live", { exact: true }).waitFor();
    expect(addressOf(page).get("from")).toBeNull();
    await page.getByRole("link", { name: "Last 15 min" }).click();
    await expect.poll(() => addressOf(page).get("range")).toBe("15m");
    await row(page, "in the newest bar").waitFor();
  });

  it("is saved as text and as JSON lines, as it is filtered", async () => {
    await say("saved line");
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(`${LOG}?search=saved+line`);
    await row(page, "saved line").waitFor();
    expect(await saved(page, "Download as text")).toMatch(
      /^\S+Z info \S+ \S+ say: said saved line\n$/,
    );
    const [first = ""] = (await saved(page, "Download as JSON lines")).split("\n");
    expect(JSON.parse(first)).toMatchObject({ text: "say: said saved line", level: "info" });
  });

  it("has equal lines that follow each other as one with a count, which unfolds, and saves all", async () => {
    for (const text of ["first", "again", "again", "again", "last"]) {
      await say(`${text} and again`);
    }
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(`${LOG}?search=and+again`);
    const rows = list(page).locator(".log-row");
    const count = list(page).getByRole("button", { name: "× 3: equal lines" });
    await count.waitFor();
    expect(await rows.count()).toBe(3);
    await page.getByText("5 of ").waitFor();
    await count.press("Enter");
    await expect.poll(() => rows.count()).toBe(5);
    await page.getByText("paused", { exact: true }).waitFor();
    await person.isSound();
    await count.press("Enter");
    await expect.poll(() => rows.count()).toBe(3);
    await row(page, "again and again").locator(".log-text").click();
    await page.locator(".log-details").getByText("3 times since").waitFor();
    await person.isSoundInAllWindows("log-repeated");
    await page.keyboard.press("f");
    await say("last and again");
    await list(page).getByRole("button", { name: "× 2: equal lines" }).waitFor();
    expect(await rows.count()).toBe(3);
    const lines = (await saved(page, "Download as text")).trim().split("\n");
    expect(lines.filter((line) => line.endsWith("said again and again"))).toHaveLength(3);
  });

  it("says that it connects again while its server is gone", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go(LOG);
    await page.getByText("live", { exact: true }).waitFor();
    await page.context().setOffline(true);
    await page.getByText("reconnecting", { exact: true }).waitFor();
    await say("written meanwhile");
    await page.context().setOffline(false);
    await row(page, "written meanwhile").waitFor({ timeout: 20_000 });
    await page.getByText("live", { exact: true }).waitFor();
  });

  it("says that it connects again where its connection was cut without a word", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await page.clock.install();
    await person.go(LOG);
    await page.getByText("live", { exact: true }).waitFor();
    await page.route("**/livez", (route) => route.abort());
    await page.clock.fastForward(MAX_SILENCE_MS);
    await page.getByText("reconnecting", { exact: true }).waitFor();
    await page.unroute("**/livez");
    await say("written in silence");
    await row(page, "written in silence").waitFor({ timeout: 20_000 });
    await page.getByText("live", { exact: true }).waitFor();
  });

  it("shows few of 100,000 lines at once, of which the newest 10,000 are searched", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/deployments/hostile/log");
    await page.getByText("live", { exact: true }).waitFor();
    expect((await world.call("hostile", "/flood", { body: {} })).status).toBe(200);
    await page
      .getByText(/^line \d{4,}$/)
      .first()
      .waitFor();
    expect(await page.locator(".log-row").count()).toBeLessThanOrEqual(MAX_ROWS);
    await page.getByRole("searchbox").fill("dropped");
    await row(page, "were dropped").first().waitFor();
    await expect.poll(() => addressOf(page).get("search")).toBe("dropped");
    await page.reload();
    await row(page, "were dropped").first().waitFor();
    await page.getByRole("searchbox").fill("");
    await page.getByText(/^\d{1,2},\d{3} lines/).waitFor();
    await list(page).focus();
    await page.keyboard.press("Home");
    await page.getByText("paused", { exact: true }).waitFor();
    expect(await page.locator(".log-row").count()).toBeLessThanOrEqual(MAX_ROWS);
    await person.isSound();
    await page.getByRole("link", { name: "Tasks" }).last().click();
    await person.heading("hostile: tasks");
  });
});
