/** The reference of the API in a browser: in the shell for who is signed in, alone for anyone else. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Folder, type Platform, start } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";
const OPERATION = "TaskService.GetTask";

describe.skipIf(skipped)(`the reference of the API${skipped}`, () => {
  const folder = new Folder();
  let platform: Platform;
  let browser: Browser;
  beforeAll(async () => {
    platform = await start(folder);
    await platform.setUp();
    browser = await sharedChromium();
  });
  afterAll(async () => {
    await closeContexts();
    await platform?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  /** The operation that the list marks as the one that is read. */
  const read = ({ page }: ConsoleBrowser) =>
    page.getByRole("navigation", { name: "Operations" }).locator("[aria-current]").textContent();

  it("stands in the shell for who is signed in, with calls of their organization", async () => {
    await using person = await ConsoleBrowser.open(browser, platform, { email: EMAIL });
    const { page } = person;
    await person.go(`/reference?search=task#${OPERATION}`);
    await page.waitForURL(`**/o/acme/reference?search=task#${OPERATION}`);
    await person.heading("API reference");
    await page.getByRole("navigation", { name: "Pages" }).getByText("Deployments").waitFor();
    await page.getByRole("navigation", { name: "Breadcrumb" }).getByText("Documentation").waitFor();
    const open = page.locator("details.operation[open]");
    expect(await open.getAttribute("id")).toBe(OPERATION);
    const curl = await open.locator(".operation-curl code").textContent();
    expect(curl).toContain("/api/v1/tasks/TASK_ID?deployment=acme/DEPLOYMENT");
    expect(curl).toContain("Bearer $TESSERA_TOKEN");
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill("api tokens");
    await page.keyboard.press("Enter");
    await person.heading("API tokens");
    await person.isSound();
  });

  it("has the same for anyone, without the shell", async () => {
    const listed = async (person: ConsoleBrowser) => {
      await person.go("/reference");
      await person.heading("API reference");
      return person.page.locator(".operation summary").allTextContents();
    };
    await using anyone = await ConsoleBrowser.open(browser, platform);
    await using person = await ConsoleBrowser.open(browser, platform, { email: EMAIL });
    expect(await listed(anyone)).toEqual(await listed(person));
    expect(await anyone.page.getByRole("navigation", { name: "Pages" }).count()).toBe(0);
    expect(new URL(anyone.page.url()).pathname).toBe("/reference");
    await anyone.isSoundInAllWindows("reference-public", { answers: [401] });
  });

  it("lists operations by resource, filters them with each letter, and keeps that in the address", async () => {
    await using person = await ConsoleBrowser.open(browser, platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/reference");
    const list = page.getByRole("navigation", { name: "Operations" });
    await list.getByRole("link", { name: "Webhooks" }).waitFor();
    expect(await list.getByText("Create webhook").count()).toBe(0);
    await page.getByLabel("Search operations").pressSequentially("webhooks rotate");
    await expect.poll(() => page.locator("details.operation").count()).toBe(1);
    expect(await list.getByRole("link").allTextContents()).toEqual([
      "Webhooks",
      "Rotate webhook secret",
    ]);
    await page.waitForURL("**/o/acme/reference?search=webhooks+rotate");
    await list.getByRole("link", { name: "Rotate webhook secret" }).click();
    await page.waitForURL("**/reference?search=webhooks+rotate#WebhookService.RotateWebhookSecret");
    await page.getByRole("button", { name: "Copy link" }).waitFor();
    await page.getByLabel("Search operations").fill("<script>");
    await page.getByText("No operation has this text.").waitFor();
    await person.isSound();
  });

  it("has the method, the act and the path of an operation beside each other", async () => {
    await using person = await ConsoleBrowser.open(browser, platform, { email: EMAIL });
    await person.go("/o/acme/reference?search=rotate+token");
    const head = person.page.locator('[id="TokenService.RotateToken"] > summary');
    await head.waitFor();
    expect(await head.textContent()).toMatch(/^POST Rotate token \/api\/v1\/tokens\//);
    const boxOf = (part: string) => head.locator(part).boundingBox();
    const [method, act, path] = [
      await boxOf(".method"),
      await boxOf(".operation-name"),
      await boxOf("code"),
    ];
    const gap = (one: typeof method, next: typeof method) =>
      (next?.x ?? 0) - (one?.x ?? 0) - (one?.width ?? 0);
    for (const px of [gap(method, act), gap(act, path)]) {
      expect(px).toBeGreaterThan(0);
      expect(px).toBeLessThan(20);
    }
    expect(Math.abs((act?.y ?? 0) - (path?.y ?? 0))).toBeLessThan(8);
  });

  it("marks the operation that is read while the page is scrolled", async () => {
    await using person = await ConsoleBrowser.open(browser, platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/reference");
    await person.heading("API reference");
    expect(await read(person)).toBe("Base URL");
    await page.evaluate("document.getElementById('TokenService.RotateToken').scrollIntoView()");
    await expect.poll(() => read(person)).toBe("Rotate token");
    // At its end a page cannot bring what it shows to the top: the last one counts, or the one of the address.
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    await expect.poll(() => read(person)).toBe("List all organizations");
    await page
      .getByRole("navigation", { name: "Operations" })
      .getByRole("link", { name: "List nodes" })
      .click();
    await expect.poll(() => read(person)).toBe("List nodes");
    await page.getByText("Who may call:").waitFor();
  });

  it("unfolds the fields of messages in requests and answers", async () => {
    await using person = await ConsoleBrowser.open(browser, platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/reference#TaskService.SubmitTasks");
    const body = page
      .locator("section", { has: page.getByRole("heading", { name: "Body" }) })
      .last();
    // What is required is open, and what is in it as well.
    await body.getByText("list of TaskCall").waitFor();
    await body.getByText("idempotency_key", { exact: true }).first().waitFor();
    await body.getByText("list of TaskCall").click();
    await expect.poll(() => body.getByText("idempotency_key", { exact: true }).count()).toBe(0);
    await person.isSoundInAllWindows("reference-operation");
  });

  it("leads by a menu where there is no room for the list", async () => {
    await using person = await ConsoleBrowser.open(browser, platform, {
      email: EMAIL,
      viewport: { width: 390, height: 844 },
    });
    const { page } = person;
    await person.go("/o/acme/reference");
    await page
      .getByRole("combobox", { name: "Operations" })
      .selectOption({ label: "\u2003Rotate token" });
    const operation = page.locator('[id="TokenService.RotateToken"][open]');
    await operation.waitFor();
    const bar = await page.locator(".shell-bar").boundingBox();
    const box = await operation.boundingBox();
    expect(box?.y).toBeGreaterThanOrEqual((bar?.y ?? 0) + (bar?.height ?? 0));
    await person.isSound();
  });
});
