import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";
import { readByShell } from "./shell.ts";

const skipped = leftOut(chromiumMissing);
const MAX_PRESSES = 40;
const EMAIL = "ada@example.com";

describe.skipIf(skipped)(`API tokens in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("echo", await artifact(), { authorization: true });
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  /** Calls as the line says that the page shows, read by a shell; the status. */
  const callAsShown = async (page: Page): Promise<number> => {
    const line = await page.getByText(/^curl /).innerText();
    const [url = "", option, header = ""] = await readByShell("curl", line);
    expect([new URL(url).host.split(".")[0], option]).toEqual(["echo", "-H"]);
    const [name = "", value = ""] = header.split(": ");
    const { status } = await world.call("echo", new URL(url).pathname, {
      headers: { [name]: value },
      host: new URL(url).host,
    });
    return status;
  };

  it("are made, tried, listed and deleted with the mouse", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/");
    await person.heading("acme");
    await page.getByRole("button", { name: EMAIL }).click();
    await page.locator("#person-menu").getByRole("link", { name: "API tokens" }).click();
    await person.heading("API tokens");
    await person.press("Create token");
    await person.isSound();
    await person.fill("Name", "laptop");
    await person.press("Submit");
    await page.getByText(/^tessera cloud login/).waitFor();
    await person.isSound();
    await person.press("Done");
    await page.getByRole("rowheader", { name: /^laptop/ }).waitFor();
    await person.press("Create token");
    await person.fill("Name", "router");
    await page.getByRole("radio", { name: /^Organization/ }).check();
    await page.getByLabel("Developer operations").uncheck();
    await page.getByLabel("Protected endpoint").check();
    await page.getByLabel("echo").check();
    await person.press("Submit");
    expect(await callAsShown(page)).toBe(200);
    await person.isSound();
    await person.press("Done");
    for (const name of ["laptop", "router"]) {
      await person.press(`Actions for ${name}`);
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await person.isSound();
      await person.press("Delete");
      await page.getByText(`Deleted ${name}`).waitFor();
      await expect.poll(() => page.getByRole("rowheader", { name }).count()).toBe(0);
    }
  });

  it("are changed by two people at once, of whom the second is told what it is now", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/tokens");
    await person.press("Create token");
    await person.fill("Name", "shared");
    await person.press("Submit");
    await person.press("Done");
    await person.press("Actions for shared");
    await page.getByRole("menuitem", { name: "Edit" }).click();
    await person.fill("Name", "mine");
    // Somebody else is first.
    const { tokens } = world.client;
    const { tokenId = "" } =
      (await tokens.listTokens({})).tokens.find(({ name }) => name === "shared") ?? {};
    await tokens.updateToken({ token: { tokenId, name: "theirs" } });
    await person.press("Save");
    await page.getByRole("dialog").getByText("It is now: theirs,").waitFor();
    await person.isSound({ answers: [409] });
    await person.press("Save");
    await page.getByText("Saved mine").waitFor();
    await page.getByRole("rowheader", { name: "mine" }).waitFor();
    await tokens.deleteToken({ tokenId });
  });

  it("say what is to choose until it is chosen", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/tokens");
    await person.press("Create token");
    await person.fill("Name", "undecided");
    await page.getByLabel("Developer operations").uncheck();
    await person.press("Submit");
    await page.getByText("Choose at least one kind of access").waitFor();
    await page.getByLabel("Protected endpoint").check();
    await person.press("Submit");
    await page.getByText("Choose at least one deployment").waitFor();
    await person.isSound({ answers: [400] });
    await page.getByLabel("echo").check();
    await expect.poll(() => page.locator(".field-error").count()).toBe(0);
  });

  it("with monitoring access are asked for, and the operator sees it", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const begin = async () => {
      await person.go("/o/acme/tokens");
      await person.press("Create token");
      await page.getByRole("radio", { name: /^Organization/ }).check();
      await page.getByLabel("Monitoring").check();
    };
    await begin();
    await page.getByText("Monitoring tokens are not enabled for acme").waitFor();
    await person.isSound();
    await person.press("Ask the operator");
    await page.getByText(`${EMAIL} asked the operator`).waitFor();
    await person.isSoundInAllWindows("ask-for-monitoring");
    await page.setViewportSize({ width: 1280, height: 800 });
    await person.go("/o/acme/operator");
    await page.getByText(`Asked for by ${EMAIL}`).waitFor();
    await person.isSound();
  });

  it("are made, tried, listed and deleted by keyboard alone", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const { keyboard } = page;
    await person.go("/");
    await person.heading("acme");
    await focus(page, EMAIL);
    await keyboard.press("Enter");
    await focus(page, "API tokens");
    await keyboard.press("Enter");
    await person.heading("API tokens");
    await focus(page, "Create token");
    await keyboard.press("Enter");
    const name = page.getByLabel("Name", { exact: true }).and(page.locator(":focus"));
    await name.waitFor();
    await keyboard.type("desk");
    await keyboard.press("Enter");
    await page.getByText("Token desk created").waitFor();
    await keyboard.press("Escape");
    await page.getByRole("rowheader", { name: /^desk/ }).waitFor();
    // By the shortcuts, too.
    await keyboard.press("g");
    await keyboard.press("o");
    await person.heading("acme");
    await keyboard.press("g");
    await keyboard.press("k");
    await person.heading("API tokens");
    await keyboard.press("c");
    await name.waitFor();
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
    expect(await callAsShown(page)).toBe(200);
    await keyboard.press("Escape");
    await page.getByRole("rowheader", { name: /^gateway/ }).waitFor();
    await focus(page, "Actions for gateway");
    await keyboard.press("Enter");
    await page.getByRole("menuitem").and(page.locator(":focus")).waitFor();
    await keyboard.press("End");
    await keyboard.press("Enter");
    await page.getByText("Delete gateway?").waitFor();
    await focus(page, "Delete");
    await keyboard.press("Enter");
    await page.getByText("Deleted gateway").waitFor();
  });

  it("take what is typed before their form is there, as the palette does", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const { keyboard } = page;
    await person.go("/o/acme/tokens");
    await person.heading("API tokens");
    let letGo = Promise.withResolvers<void>();
    await page.route("**/console/assets/*.js", (route) =>
      letGo.promise.then(() => route.continue()),
    );
    // "g k" and "g o" would open other pages.
    await keyboard.press("Control+k");
    await keyboard.type("x");
    await keyboard.press("Backspace");
    await keyboard.type("go k");
    letGo.resolve();
    const search = page.getByRole("combobox", { name: /^Search/ }).and(page.locator(":focus"));
    await expect.poll(() => search.inputValue()).toBe("go k");
    await keyboard.press("Escape");
    letGo = Promise.withResolvers();
    await keyboard.press("c");
    await keyboard.type("quick");
    await keyboard.press("Enter");
    letGo.resolve();
    await page.getByText("Token quick created").waitFor();
    await keyboard.press("Escape");
    await page.getByRole("rowheader", { name: /^quick/ }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/o/acme/tokens");
  });

  it("give what is typed for a form that is left to no other one", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/deployments/echo/schedules");
    const create = page.getByRole("button", { name: "Create schedule" });
    await create.waitFor();
    await page.getByRole("link", { name: "API tokens" }).first().click();
    await person.heading("API tokens");
    const letGo = Promise.withResolvers<void>();
    await page.route("**/console/assets/*.js", (route) =>
      letGo.promise.then(() => route.continue()),
    );
    await page.keyboard.press("c");
    await page.keyboard.type("lost");
    await page.goBack();
    await create.click();
    const name = page.getByRole("dialog").locator("input:focus");
    await name.waitFor();
    expect(await name.inputValue()).toBe("");
    letGo.resolve();
  });

  it("load with at most 120 kB", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await person.go("/o/acme/tokens");
    await person.heading("API tokens");
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
    .or(page.getByRole("link", { name, exact: true }))
    .and(page.locator(":focus"));
  for (let presses = 0; presses < MAX_PRESSES && (await wanted.count()) === 0; presses += 1) {
    await page.keyboard.press("Tab");
  }
  expect(await wanted.count(), `${name} has the focus`).toBe(1);
}
