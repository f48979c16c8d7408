import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, launchChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const MAX_PRESSES = 40;
const EMAIL = "ada@example.com";

describe.skipIf(skipped)(`API tokens in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await launchChromium();
    world = await World.start();
    await world.deployed("echo", await artifact(), { authorization: true });
  });
  afterAll(async () => {
    await browser?.close();
    await world?.[Symbol.asyncDispose]();
  });

  it("are made, shown once, listed and deleted with the mouse", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/");
    await person.heading("acme");
    await person.isSound();
    await page.getByRole("button", { name: EMAIL }).click();
    await page.locator("#person-menu").getByRole("link", { name: "API Tokens" }).click();
    await person.heading("API Tokens");
    await person.press("Create token");
    await person.isSound();
    await person.fill("Name", "laptop");
    await person.press("Submit");
    await page.getByText(/^tessera cloud login/).waitFor();
    await person.isSound();
    await person.press("Done");
    await page.getByRole("rowheader", { name: /^laptop/ }).waitFor();
    await person.isSound();
    await person.press("Actions for laptop");
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await person.press("Delete");
    await page.getByText("Deleted laptop").waitFor();
    await expect.poll(() => page.getByRole("rowheader", { name: /^laptop/ }).count()).toBe(0);
  });

  it("are made for one deployment by keyboard alone, and their curl line is answered", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const { keyboard } = page;
    await person.go("/");
    await person.heading("acme");
    await keyboard.press("g");
    await keyboard.press("k");
    await person.heading("API Tokens");
    await keyboard.press("c");
    await page.getByLabel("Name", { exact: true }).and(page.locator(":focus")).waitFor();
    await keyboard.type("gateway");
    // Back to the kind, and on to the access.
    await keyboard.press("Shift+Tab");
    await keyboard.press("ArrowDown");
    await focus(page, "Developer operations");
    await keyboard.press("Space");
    await focus(page, "Protected endpoint");
    await keyboard.press("Space");
    await focus(page, "echo");
    await keyboard.press("Space");
    await keyboard.press("Enter");
    await page.getByText("Token gateway created").waitFor();
    await person.isSound();
    const curl = await page.getByText(/^curl /).innerText();
    const [, value = ""] = /Bearer (\S+)"/.exec(curl) ?? [];
    const { status } = await world.call("echo", "/readyz", { method: "GET", token: value });
    expect(status).toBe(200);
    await keyboard.press("Escape");
    await page.getByRole("rowheader", { name: /^gateway/ }).waitFor();
    await page.getByRole("button", { name: "Actions for gateway" }).focus();
    await keyboard.press("Enter");
    await page.getByRole("menuitem").and(page.locator(":focus")).waitFor();
    await keyboard.press("End");
    await keyboard.press("Enter");
    await page.getByText("Delete gateway?").waitFor();
    await focus(page, "Delete");
    await keyboard.press("Enter");
    await page.getByText("Deleted gateway").waitFor();
  });

  it("load with at most 120 kB", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await person.go("/o/acme/tokens");
    await person.heading("API Tokens");
    const bytes = (await person.page.evaluate(TRANSFERRED)) as number;
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThan(120_000);
  });
});

/** The bytes that came over the wire for the page and all that it loaded. */
const TRANSFERRED = `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, { transferSize }) => sum + transferSize, 0)`;

/** Presses Tab until the element of this name has the focus. */
async function focus(page: Page, name: string): Promise<void> {
  const wanted = page
    .getByLabel(name, { exact: false })
    .or(page.getByRole("button", { name, exact: true }))
    .and(page.locator(":focus"));
  for (let presses = 0; presses < MAX_PRESSES && (await wanted.count()) === 0; presses += 1) {
    await page.keyboard.press("Tab");
  }
  expect(await wanted.count(), `${name} has the focus`).toBe(1);
}
