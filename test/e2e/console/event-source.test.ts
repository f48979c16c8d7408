/** `EventSource` in a browser, on a protected deployment, which it can send no token. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";

const skipped = leftOut(chromiumMissing);

/** What a page sees: the names and states of events, and how it ended. */
interface Seen {
  readonly events: readonly string[];
  readonly end: "end" | "closed";
}

describe.skipIf(skipped)(`EventSource on a protected deployment${skipped}`, () => {
  let browser: Browser;
  let world: World;
  /** A page of a site of its own. */
  const site = createServer((_, res) =>
    res.setHeader("content-type", "text/html").end("<!doctype html><title>app</title>"),
  );
  let origin: string;
  let stranger: string;
  let token: { readonly id: string; readonly value: string };

  beforeAll(async () => {
    browser = await sharedChromium();
    site.listen(0, "127.0.0.1");
    await once(site, "listening");
    const { port } = site.address() as AddressInfo;
    origin = `http://app.localhost:${port}`;
    stranger = `http://stranger.localhost:${port}`;
    world = await World.start({ env: { TESSERA_CORS: origin } });
    await world.deployed("afar", await artifact("afar"), { authorization: true });
    token = await world.platform.createToken(world.cookie, {
      access: ["protected_endpoint"],
      deployments: ["afar"],
    });
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
    site.closeAllConnections();
    site.close();
  });

  /** Submits as the server of the page's site does, and makes the URL that it gives the page. */
  async function submitted(endpoint: string, body: object): Promise<string> {
    const { value } = token;
    const { json } = await world.call("afar", `/${endpoint}/submit`, { body, token: value });
    const create = `/${endpoint}/access?task_id=${json.task_id}`;
    return (await world.call("afar", create, { method: "POST", token: value })).json.url;
  }

  async function pageOf(url: string): Promise<Page> {
    const page = await browser.newPage();
    await page.goto(`${url}/`);
    return page;
  }

  const follow = (page: Page, url: string): Promise<Seen> =>
    page.evaluate(
      (from) =>
        new Promise<Seen>((resolve) => {
          const events: string[] = [];
          const source = new EventSource(from);
          const ended = (end: Seen["end"]) => {
            source.close();
            resolve({ events, end });
          };
          for (const name of ["state", "progress", "piece"]) {
            source.addEventListener(name, (event) => {
              const { state } = JSON.parse((event as MessageEvent).data);
              events.push(state ? state.status : name);
            });
          }
          source.addEventListener("end", () => ended("end"));
          source.addEventListener("error", () => {
            if (source.readyState === EventSource.CLOSED) {
              ended("closed");
            }
          });
        }),
      url,
    );

  it("follows a task from a page of an allowed site, to its end", async () => {
    const page = await pageOf(origin);
    const seen = await follow(page, await submitted("count", { to: 3 }));
    expect(seen.end).toBe("end");
    expect(seen.events.filter((each) => each !== "piece")).toEqual([
      "queued",
      "running",
      "success",
    ]);
    expect(seen.events.filter((each) => each === "piece")).toHaveLength(3);
    await page.close();
  });

  it("ends for good when the server says that its access has ended", {
    timeout: 40_000,
  }, async () => {
    const page = await pageOf(origin);
    const url = await submitted("hold", { forMs: 60_000 });
    const seen = follow(page, url);
    await page.waitForResponse((response) => response.url() === url);
    await world.call("", `/api/v1/tokens/${token.id}`, {
      method: "DELETE",
      host: `localhost:${world.platform.started.port}`,
      headers: world.cookie,
    });
    // The browser connects once more, and is refused.
    expect(await seen).toEqual({ events: ["queued", "running"], end: "closed" });
    token = await world.platform.createToken(world.cookie, {
      access: ["protected_endpoint"],
      deployments: ["afar"],
    });
    await page.close();
  });

  it("is refused with an altered access, and to a page of any other site", async () => {
    const page = await pageOf(origin);
    const url = await submitted("count", { to: 1 });
    expect(await follow(page, `${url}x`)).toEqual({ events: [], end: "closed" });
    await page.close();
    const other = await pageOf(stranger);
    expect(await follow(other, url)).toEqual({ events: [], end: "closed" });
    await other.close();
  });
});
