/** The documentation as the platform serves it, in a browser of somebody who is not signed in. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { Folder, type Platform, start } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);

/** One of each kind: prose, tables, code in several languages, a long reference. */
const PAGES = [
  ...["", "quickstart.html", "production.html", "sizing.html", "troubleshooting.html", "grpc.html"],
  ...["security-model.html", "comparison.html", "typescript.html", "decisions/"],
];

const folder = new Folder();
let platform: Platform;
beforeAll(async () => {
  platform = await start(folder);
});
afterAll(async () => {
  await platform?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

describe("the site of the documentation", () => {
  it("is sent compressed, and under a policy that allows no script but its files", async () => {
    const answer = await fetch(`${platform.url}/docs/`, {
      headers: { "accept-encoding": "gzip" },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-encoding")).toBe("gzip");
    expect(answer.headers.get("content-type")).toContain("text/html");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
    // A page of another release may have the same size, and by npm the same time.
    expect(answer.headers.get("etag") ?? answer.headers.get("last-modified")).toBeNull();
    const policy = answer.headers.get("content-security-policy");
    expect(policy).toContain("script-src 'self';");
    const page = await answer.text();
    const [, script = ""] = /<script[^>]* src="([^"]+)"/.exec(page) ?? [];
    const asset = await fetch(platform.url + script, { headers: { "accept-encoding": "gzip" } });
    expect(asset.status).toBe(200);
    expect(asset.headers.get("cache-control")).toContain("immutable");
    expect(await (await fetch(`${platform.url}/docs/nothing.html`)).json()).toMatchObject({
      details: expect.anything(),
    });
  });

  it.each([
    ["/docs", "/docs/"],
    ["/reference/", "/reference"],
    ["/docs?search=delete+%23token&other=1", "/reference?search=delete+%23token"],
  ])("leads from %s to %s", async (from, to) => {
    const answer = await fetch(platform.url + from, { redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).toEqual([308, to]);
    expect((await fetch(platform.url + to)).status).toBe(200);
  });

  it("is not served by deployments", async () => {
    const asked = request(`${platform.url}/docs/`, {
      headers: { host: "summarizer.acme.apps.localhost" },
    });
    asked.end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    // As every path there for who has no token, whether there is such a deployment or not.
    expect(answer.statusCode).toBe(401);
  });
});

describe.skipIf(skipped)(`a reader of the documentation${skipped}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await sharedChromium();
  });
  afterAll(closeContexts);

  it.each(PAGES)("finds /docs/%s sound in light and dark, wide and narrow", async (path) => {
    await using reader = await ConsoleBrowser.open(browser, platform);
    await reader.go(`/docs/${path}`);
    await reader.page.getByRole("heading", { level: 1 }).waitFor();
    await reader.page.waitForLoadState("networkidle");
    await reader.isSoundInAllWindows(`docs-${path.replaceAll("/", "-")}`);
  });

  it("finds the longest page sound", { timeout: 180_000 }, async () => {
    await using reader = await ConsoleBrowser.open(browser, platform);
    await reader.go("/docs/http.html");
    await reader.page.getByRole("heading", { level: 1 }).waitFor();
    await reader.isSound();
  });

  it("searches all pages, without asking another server", async () => {
    await using reader = await ConsoleBrowser.open(browser, platform);
    const asked: string[] = [];
    reader.page.on("request", (request) => asked.push(new URL(request.url()).origin));
    await reader.go("/docs/");
    await reader.page.getByRole("button", { name: "Search" }).first().click();
    await reader.page.getByRole("searchbox").fill("QUEUE_FULL");
    await reader.page
      .getByRole("option")
      .or(reader.page.locator(".result"))
      .filter({ hasText: "QUEUE_FULL" })
      .first()
      .click();
    await reader.page.waitForURL(/troubleshooting\.html/);
    expect(new Set(asked)).toEqual(new Set([platform.url.replace("127.0.0.1", "localhost")]));
    await reader.isSound();
  });

  it.each([
    ["rotate token", "/docs/tokens.html#rotate-a-token"],
    ["secrets", "/docs/deploy.html#secrets"],
    ["schedule", "/docs/calls.html#schedule-a-task"],
  ])("finds the guide before the reference: %s", async (words, guide) => {
    await using reader = await ConsoleBrowser.open(browser, platform);
    await reader.go("/docs/");
    await reader.page.getByRole("button", { name: "Search" }).first().click();
    await reader.page.getByRole("searchbox").fill(words);
    const first = reader.page.locator("a.result").first();
    await expect.poll(() => first.getAttribute("href")).toBe(guide);
  });

  it("leads to the reference of the API, also where that was once", async () => {
    await using reader = await ConsoleBrowser.open(browser, platform);
    await reader.go("/docs");
    await reader.page.waitForURL("**/docs/");
    await reader.page.getByRole("link", { name: "API", exact: true }).first().click();
    await reader.page.waitForURL("**/reference");
    await reader.heading("API reference");
    await reader.page.getByRole("link", { name: "the documentation" }).click();
    await reader.page.waitForURL("**/docs/");
    await reader.go("/docs#TaskService.GetTask");
    await reader.page.waitForURL("**/reference#TaskService.GetTask");
    await reader.heading("API reference");
  });

  it("comes from the console and goes back", async () => {
    await platform.setUp();
    await using reader = await ConsoleBrowser.open(browser, platform, {
      email: "ada@example.com",
    });
    await reader.go("/");
    await reader.page.locator(".person-button").click();
    await reader.page.getByRole("link", { name: "Documentation" }).click();
    await reader.page.waitForURL("**/docs/");
    await reader.page.getByRole("link", { name: "Console" }).first().click();
    await reader.page.waitForURL("**/o/acme");
  });
});
