/** Mounted servers on the page of a service, in a browser. */

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { leftOut } from "../../needed.ts";
import { Program } from "../cli/program.ts";
import { World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { axeFinds, ConsoleBrowser } from "./console-browser.ts";

const EMAIL = "ada@example.com";
const skipped = leftOut(chromiumMissing);

/** A server with a document, in which something is wrong, and one without. */
const SERVICE = `
import { createServer } from "node:http";
import { api, service } from "tessera-platform";

const item = { type: "object", required: ["name", "size"], properties: {
  name: { type: "string", examples: ["it's"] }, size: { $ref: "#/components/schemas/Size" } } };
const document = {
  openapi: "3.1.0",
  info: { title: "shop", version: "1" },
  paths: { "/items/{number}": { put: {
    summary: "Keep an item",
    parameters: [
      { name: "number", in: "path", required: true, schema: { type: "integer", minimum: 7 } },
      { name: "by", in: "query", required: true, schema: { type: "string" } },
    ],
    requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/Item" } } } },
  } }, "/odd": { get: { requestBody: { content: 5 }, parameters: [{ name: {}, in: 5, required: true }] } } },
  components: { schemas: { Item: item, Size: { type: "integer" } } },
};
const shop = createServer(async (req, res) => {
  if (req.url.endsWith("/openapi.json")) {
    res.end(JSON.stringify(document));
    return;
  }
  let body = "";
  for await (const chunk of req) body += chunk;
  res.end(req.method + " " + req.url + " " + body);
});

export default service({
  name: "shop",
  mounts: { "/shop": { app: shop }, "/ui": { app: () => new Response("its own page") } },
  endpoints: { hello: api({}, () => "hello") },
});
`;

describe.skipIf(skipped)(`mounted servers in a browser${skipped}`, { timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "tessera-mounts-"));
  let browser: Browser;
  let program: Program;
  let url: string;
  let page: Page;
  beforeAll(async () => {
    const file = join(folder, "service.js");
    writeFileSync(file, SERVICE);
    browser = await sharedChromium();
    ({ program, url } = await Program.serve([file]));
    page = await browser.newPage();
    page.setDefaultTimeout(5_000);
  }, 60_000);
  afterAll(async () => {
    await closeContexts();
    await program?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it("stand beside the endpoints, with their operations as commands that a shell can run", async () => {
    await page.goto(url);
    await page.getByRole("link", { name: "/shop" }).click();
    await page.getByText("PUT /shop/items/{number}").click();
    await page.getByText("Keep an item").waitFor();
    const [command = ""] = await page.locator(".mount-curl code").allInnerTexts();
    const { stdout } = await promisify(execFile)("sh", ["-c", command]);
    expect(stdout).toBe('PUT /shop/items/7?by=by {"name":"it\'s","size":1}');
    await page.getByText("GET /shop/odd").click();
    await page.getByText(`curl ${url}/shop/odd`).waitFor();
    expect(await axeFinds(page)).toEqual([]);
  });

  it("have links to their own pages, also where they describe nothing", async () => {
    await page.goto(`${url}/#/%2Fui`);
    await page.getByText(/GET \/ui\/openapi.json|its document is no JSON/).waitFor();
    const opened = page.waitForEvent("popup");
    await page.getByRole("link", { name: "Open /ui" }).click();
    expect(await (await opened).locator("body").innerText()).toBe("its own page");
  });

  it("fit a phone", async () => {
    const phone = await browser.newPage({ viewport: { width: 390, height: 800 } });
    await phone.goto(`${url}/#/%2Fshop`);
    await phone.getByText("PUT /shop/items/{number}").click();
    expect(await phone.evaluate("document.documentElement.scrollWidth")).toBe(390);
    await phone.close();
  });

  it("stand in the playground of the console, which calls as the person who looks", async () => {
    await using world = await World.start();
    await world.deployed("shop", await buildArtifact(join(folder, "service.js")), {
      authorization: true,
      settings: { minWorkers: 1 },
    });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await person.go("/o/acme/deployments/shop/playground#/%2Fshop");
    await person.page.getByText("PUT /shop/items/{number}").click();
    await person.page.getByText('-H "authorization: Bearer $TESSERA_TOKEN"').first().waitFor();
    const link = person.page.getByRole("link", { name: "Open /shop" });
    expect(await link.getAttribute("href")).toMatch(/^http:\/\/shop\.acme\..*\/shop$/);
    await person.isSoundInAllWindows("playground-mount");
  });
});
