/** Several tasks in the console: selected ones, or all that the filter of a list chooses. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";
/** More than a page of the list has. */
const MANY = 250;

describe.skipIf(skipped)(`several tasks in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  const submit = async (endpoint: string, count: number, more: object = {}): Promise<void> => {
    const tasks = Array.from({ length: count }, () => ({ endpoint, ...more }));
    const { status, json } = await world.platform.call(
      "/api/v1/tasks:batchSubmit",
      { deployment: "acme/tape", tasks },
      world.cookie,
    );
    expect([status, json.accepted]).toEqual([200, count]);
  };

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("tape", await artifact("tape"));
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  it("are counted, and cancelled once that was confirmed, of all pages", async () => {
    await submit("quick", MANY, { delay: "3600s", arguments: { take: 1 } });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/tasks?status=scheduled");
    await page.getByRole("table").waitFor();
    await person.isSound();
    await person.press("All tasks of this list");
    expect(await page.getByRole("menuitem", { name: /^Retry/ }).count()).toBe(0);
    await page.getByRole("menuitem", { name: /^Cancel [1-9][\d,]*\+? tasks…$/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(`${MANY} tasks match, on all pages.`).waitFor();
    await person.isSound();
    await person.picture("tasks-cancel-all");
    await dialog.getByRole("button", { name: `Cancel ${MANY} tasks` }).click();
    await page.getByText(`${MANY} tasks cancelled`).waitFor();
    await page.getByText("No tasks match").waitFor();
    // None is left to cancel, or to delete: the menu has the focus all the same, and Escape leaves it.
    await person.press("All tasks of this list");
    const nothing = page.getByRole("menuitem", { name: "Cancel 0 tasks…" });
    await nothing.and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await nothing.waitFor({ state: "hidden" });
    expect(await dialog.count()).toBe(0);
  });

  it("are selected by keyboard and by mouse, and retried", async () => {
    await submit("hiss", 3);
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/tasks?status=failure");
    const rows = page.getByRole("row");
    await page.locator('table[aria-rowcount="4"]').waitFor();
    // j and k go from row to row, x selects, Escape leaves the table.
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await page.keyboard.press("x");
    await page.getByText("1 task selected").waitFor();
    await rows.nth(1).getByRole("checkbox", { checked: true }).waitFor();
    await page.keyboard.press("Escape");
    expect(await page.evaluate("document.activeElement === document.body")).toBe(true);
    await rows
      .nth(3)
      .getByRole("checkbox")
      .click({ modifiers: ["Shift"] });
    await page.getByText("3 tasks selected").waitFor();
    await rows.nth(2).getByRole("checkbox").click();
    await page.getByText("2 tasks selected").waitFor();
    await person.isSound();
    await person.picture("tasks-selected");
    await person.press("Retry 2");
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual(["hiss ", "hiss "]);
    await dialog.getByRole("button", { name: "Retry 2 tasks" }).click();
    await page.getByText("2 tasks retried").waitFor();
    // They fail as well.
    await page.locator('table[aria-rowcount="6"]').waitFor();
    await page.getByLabel("Select all that are shown").click();
    await page.getByText("5 tasks selected").waitFor();
    await person.press("Select none");
    await page.getByText("5 tasks selected").waitFor({ state: "detached" });
    await person.press("All tasks of this list");
    await page.getByRole("menuitem", { name: "Retry 5 tasks…" }).waitFor();
  });

  it("that run are cancelled where that is asked for", async () => {
    await submit("record", 1);
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/deployments/tape/tasks?endpoint=record");
    await page.getByRole("cell", { name: "running" }).waitFor();
    await person.press("All tasks of this list");
    await page.getByRole("menuitem", { name: "Cancel 1 task…" }).click();
    const dialog = page.getByRole("dialog");
    // None waits: those that run are meant, until somebody says otherwise.
    await dialog.getByText("1 task matches, on all pages.").waitFor();
    await dialog.getByLabel("Also tasks that run").uncheck();
    await dialog.getByText("No tasks match.").waitFor();
    await dialog.getByLabel("Also tasks that run").check();
    await dialog.getByRole("button", { name: "Cancel 1 task" }).click();
    await page.getByText("1 task cancelled").waitFor();
    await page.getByRole("cell", { name: "cancelled" }).waitFor();
  });
});
