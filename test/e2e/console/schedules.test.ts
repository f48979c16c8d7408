/** Schedules in the console, by keyboard alone. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);

/** Answers that a preview gets to what is not written yet, of which the browser complains. */
const answers = [400];

describe.skipIf(skipped)(`schedules in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("echo", await artifact());
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  const openPage = async () => {
    const person = await ConsoleBrowser.open(browser, world.platform, { email: "ada@example.com" });
    await person.go("/o/acme/deployments/echo/schedules");
    return person;
  };

  it("are written with their next times in sight, and changed, by keyboard", async () => {
    await using person = await openPage();
    const { page } = person;
    const dialog = page.getByRole("dialog");
    const times = dialog.getByRole("status").getByRole("listitem");
    await page.getByText("A schedule submits").waitFor();
    await page.getByRole("button", { name: "Create schedule" }).focus();
    await page.keyboard.press("Enter");
    await dialog.getByText("has five fields").waitFor();
    await type(page, "Name", "nightly");
    await type(page, "Cron expression", "0 3 30 2 *");
    await type(page, "Time zone", "Europe/Amsterdam");
    await dialog.getByText("Never comes").waitFor();
    await type(page, "Cron expression", "0 3 * * MON");
    await dialog.getByText("text is required").waitFor();
    await page.keyboard.press("Enter");
    await dialog.locator(".field-error", { hasText: "text is required" }).waitFor();
    expect(await focused(page)).toBe("Arguments");
    await type(page, "Arguments", `{"text": "x"}`);
    await times.nth(4).waitFor();
    expect(await times.allTextContents()).toEqual(
      Array(5).fill(expect.stringMatching(/Mon.*03:00/)),
    );
    await person.isSoundInAllWindows("schedule-form", { answers });
    await type(page, "Name", "nightly");
    await page.keyboard.press("Enter");
    const row = page.getByRole("row", { name: /^nightly/ });
    await row.getByText("Europe/Amsterdam").waitFor();
    await row.getByText("active", { exact: true }).waitFor();
    expect(await dialog.count()).toBe(0);

    await row.getByRole("button", { name: /^nightly/ }).focus();
    await page.keyboard.press("Enter");
    const next = page.locator(".row-details").getByRole("list", { name: "Next times" });
    await next.getByRole("listitem").nth(4).waitFor();
    await page.getByText("none among the newest tasks of work").waitFor();
    await person.isSoundInAllWindows("schedules", { answers });
    await page.setViewportSize({ width: 1280, height: 800 });

    // Who has read another version changes nothing.
    const stale = { name: "nightly", paused: true, version: 7 };
    await expect(
      world.client.schedules.updateSchedule({ deployment: "echo", schedule: stale }),
    ).rejects.toThrow("was changed by somebody else meanwhile");
    await choose(page, "nightly", "Edit");
    await times.nth(4).waitFor();
    expect(await dialog.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    await type(page, "Cron expression", "30 4 * * MON");
    await times.filter({ hasText: "04:30" }).nth(4).waitFor();
    // Somebody else is first, and what they changed beside it stays.
    const first = { name: "nightly", cron: "0 5 * * MON", timeZone: "UTC" };
    await world.client.schedules.updateSchedule({ deployment: "echo", schedule: first });
    await page.keyboard.press("Enter");
    await dialog.getByText("It is now: Every Monday at 05:00, UTC, of work. Save").waitFor();
    await page.keyboard.press("Enter");
    await row.getByText("Every Monday at 04:30").waitFor();
    await row.getByText(", UTC").waitFor();
    await row.getByText("30 4 * * MON").waitFor();
    await choose(page, "nightly", "Pause");
    await row.getByText("paused", { exact: true }).waitFor();
    await page.getByText("none while it is paused").waitFor();
    await choose(page, "nightly", "Resume");
    await row.getByText("active", { exact: true }).waitFor();
    await choose(page, "nightly", "Delete");
    await dialog.getByText("that it has submitted stay").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("A schedule submits").waitFor();
    await person.isSound({ answers: [...answers, 409] });
  });

  it("lead to their tasks, and tasks to their schedule", async () => {
    const { schedules } = world.client;
    const args = { arguments: { text: "x" } };
    const yearly = { name: "yearly", endpoint: "work", cron: "0 0 1 1 *", ...args };
    await schedules.createSchedule({ deployment: "echo", schedule: yearly });
    await using person = await openPage();
    const { page } = person;
    await choose(page, "yearly", "Run now");
    await person.heading("Task of work");
    await page.getByRole("link", { name: "schedule yearly" }).click();

    // As if its time had come.
    using database = new DatabaseSync(join(world.folder.data, "tessera.db"));
    database.prepare("UPDATE schedules SET next_at_ms = ?").run(Date.now());
    const row = page.getByRole("row", { name: /^yearly/ });
    await row.getByRole("link").waitFor({ timeout: 30_000 });
    await person.isSoundInAllWindows("schedule-fired");
    await row.getByRole("link").click();
    await person.heading("Task of work");
    await page.getByRole("link", { name: "schedule yearly" }).click();
    await row.getByRole("button", { name: /^yearly/ }).click();
    const runs = page.getByRole("list", { name: "Last runs" });
    await runs.getByRole("link").nth(1).waitFor();
    await person.isSound();
  });
});

/** Replaces what a field has, which `Tab` leads to. */
async function type(page: Page, label: string, text: string): Promise<void> {
  for (let tabs = 0; (await focused(page)) !== label; tabs += 1) {
    expect(tabs, label).toBeLessThan(20);
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.type(text);
}

/** The label of the field that has the focus. */
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>("document.activeElement.labels?.[0]?.textContent ?? ''");

/** Chooses from the menu of a schedule. */
async function choose(page: Page, name: string, action: string): Promise<void> {
  await page.getByRole("button", { name: `Actions for ${name}` }).focus();
  await page.keyboard.press("Enter");
  const item = page.getByRole("menuitem", { name: action });
  await item.focus();
  await page.keyboard.press("Enter");
}
