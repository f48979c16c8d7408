/** A protected deployment in a browser that adds a header to all it sends, as an extension does. */
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { bearer } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";

const skipped = leftOut(chromiumMissing);
const FILE = {
  name: "naïve 1.bin",
  mimeType: "application/x-made",
  buffer: Buffer.alloc(300_000, 7),
};

describe.skipIf(skipped)(`a protected deployment in a browser${skipped}`, () => {
  let browser: Browser;
  let world: World;
  let url: string;
  let token: string;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("afar", await artifact("afar"), { authorization: true });
    url = `http://afar.acme.apps.localhost:${world.platform.started.port}`;
    const access = ["protected_endpoint"];
    ({ value: token } = await world.platform.createToken(world.cookie, {
      access,
      deployments: ["afar"],
    }));
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  /** A page of a browser that adds the header, or does not. */
  const opened = async (extraHTTPHeaders: Record<string, string>): Promise<Page> => {
    const context = await browser.newContext({ extraHTTPHeaders });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    return page;
  };
  const press = (page: Page, name: string) =>
    page.getByRole("button", { name, exact: true }).click();
  /** Presses the link to a result and reads what the browser saved. */
  const saved = async (page: Page) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: /^Download / }).click(),
    ]);
    return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
  };

  it("opens with an added header: its page, form, files and events, and no dialog for a token", async () => {
    const page = await opened(bearer(token));
    expect((await page.goto(`${url}/#/secret`))?.status()).toBe(200);
    await press(page, "Call");
    await page.getByText("one none").first().waitFor();

    await page.goto(`${url}/#/copy`);
    await page.locator("input[type=file]:visible").setInputFiles(FILE);
    await press(page, "Call");
    expect(await saved(page)).toEqual({ name: FILE.name, bytes: FILE.buffer });

    await page.goto(`${url}/#/keep`);
    await page.locator("input[type=file]:visible").setInputFiles(FILE);
    await press(page, "Submit");
    await page.locator(".timeline .status", { hasText: "success" }).waitFor();
    await page.getByText("halfway").first().waitFor({ state: "attached" });
    expect(await saved(page)).toEqual({ name: FILE.name, bytes: FILE.buffer });
    expect(await page.locator("dialog[open]").count()).toBe(0);

    const taskId = new URL(page.url()).hash.split("/")[2];
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      // The navigation becomes the download.
      page.goto(`${url}/keep/get?task_id=${taskId}`).catch(() => undefined),
    ]);
    expect(download.suggestedFilename()).toBe(FILE.name);
    expect(await readFile(await download.path())).toEqual(FILE.buffer);
    const states = await page.evaluate(
      (path) =>
        new Promise<string[]>((resolve, reject) => {
          const seen: string[] = [];
          const events = new EventSource(path);
          events.onerror = () => reject(new Error("the events ended"));
          events.addEventListener("state", (event) => {
            const { status } = JSON.parse((event as MessageEvent).data).state;
            seen.push(status);
            if (status === "success") {
              events.close();
              resolve(seen);
            }
          });
        }),
      `/keep/events?task_id=${taskId}`,
    );
    expect(states).toEqual(["queued", "running", "success"]);
    expect((await page.goto(`${url}/schema.json`))?.status()).toBe(200);
    await page.context().close();
  });

  it("says without the header what to do, whatever is opened", async () => {
    const page = await opened({});
    const started = await page.goto(url);
    expect(started?.status()).toBe(401);
    await page.getByLabel("Token", { exact: true }).waitFor();
    for (const path of ["/copy", "/keep/get?task_id=x", "/schema.json", "/docs.json"]) {
      expect([path, (await page.goto(url + path))?.status()]).toEqual([path, 401]);
      await page.getByRole("heading", { name: "This needs a token" }).waitFor();
    }
    await page.context().close();
    const wrong = await opened(bearer("tsr_wrong"));
    await wrong.goto(`${url}/docs.json`);
    await wrong.getByRole("heading", { name: "The token is not valid" }).waitFor();
    await wrong.context().close();
  });
});
