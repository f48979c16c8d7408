import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, until, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const email = "ada@example.com";
const COUNTING = "/o/acme/deployments/counting/metrics?show=service";
const COUNTED = ["words_total", "cache_bytes", "load_seconds"];

/** How often each word is said: those with the lowest numbers get no line of their own. */
const WORDS = {
  "<script>alert(1)</script>": 800,
  שלום: 700,
  ["long".repeat(50)]: 600,
  four: 500,
  five: 400,
  six: 300,
  seven: 2,
  eight: 1,
};

describe.skipIf(skipped)(`what a service counts itself, in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("counting", await artifact("counting"));
    await world.deployed("silent", await artifact("tape"));
    await world.call("counting", "/say", { body: { words: WORDS } });
    // A node stores what it measured every ten seconds. Pages that open later have all of it at once.
    const asked = { deployment: "counting", selectors: COUNTED };
    await until(
      () => world.client.metrics.queryMetrics(asked),
      ({ series }) =>
        COUNTED.every((metric) =>
          series.some(({ name, values }) => name === metric && values.some((value) => value > 0)),
        ),
    );
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  /** The names of the columns, and all values that are known. */
  async function table(chart: Locator): Promise<{ lines: string[]; values: string[] }> {
    const [, ...lines] = await chart.getByRole("columnheader").allTextContents();
    const values = await chart.getByRole("cell").allTextContents();
    return { lines, values: [...new Set(values)].filter((value) => value !== "none") };
  }

  it("has a chart for each metric, with its kind, help and unit, and the highest label sets", async () => {
    // Charts are drawn where they are seen.
    const viewport = { width: 1280, height: 3_000 };
    await using person = await ConsoleBrowser.open(browser, world.platform, { email, viewport });
    await person.go(COUNTING);
    await person.heading("counting: metrics");
    const range = person.page.locator('[aria-label="Time range"] a[aria-current]');
    await range.filter({ hasText: "Since r1" }).waitFor();
    await person.page.getByRole("link", { name: "Last 15 min" }).click();
    await range.filter({ hasText: "15 min" }).waitFor();
    await person.page.getByRole("heading", { name: "The service's own metrics" }).waitFor();
    // They are called by their sentence, and by their name after it.
    const chart = (name: string) =>
      person.page.getByRole("region", { name: new RegExp(`(^| )${name}$`) });
    const words = chart("words_total");
    await words.locator("canvas").waitFor();
    await words.getByRole("heading", { name: "Words that were <b>said</b>" }).waitFor();
    await words.getByText("Counter: increase per minute").waitFor();
    const all = words.getByRole("button", { name: "Show all 8" });
    await all.waitFor();
    const { lines } = await table(words);
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe("word=\u2068<script>alert(1)</script>\u2069");
    // Marks isolate each word, which may be written from right to left.
    expect(lines).not.toContain("word=\u2068seven\u2069");
    await all.click();
    await all.waitFor({ state: "detached" });
    expect((await table(words)).lines.slice(6)).toEqual([
      ...["word=\u2068seven\u2069", "word=\u2068eight\u2069"],
    ]);
    expect(await words.getByRole("row").count()).toBeGreaterThan(12);
    await chart("cache_bytes").getByText("Gauge in bytes").waitFor();
    expect((await table(chart("cache_bytes"))).values).toEqual(["3 MiB"]);
    const load = await table(chart("load_seconds"));
    expect(load.lines).toEqual(["p50", "p95", "p99"]);
    await chart("unused_total").getByText("Nothing was measured in this time.").waitFor();
    await person.isSound();
    await person.page.getByRole("button", { name: "Platform", exact: true }).click();
    await person.page.getByRole("region", { name: "Calls", exact: true }).waitFor();
    await person.page.getByRole("button", { name: "Service", exact: true }).click();
    await person.page.getByRole("link", { name: "Last 7 d" }).click();
    await range.filter({ hasText: "7 d" }).waitFor();
    await words.getByText("Counter: increase per minute").waitFor();
    await person.isSound();
  });

  it.each(
    (["light", "dark"] as const).flatMap((colorScheme) =>
      [1280, 390].map((width) => [colorScheme, width] as const),
    ),
  )("looks well, %s, at a width of %d", async (colorScheme, width) => {
    const options = { email, colorScheme, viewport: { width, height: 1_400 } };
    await using person = await ConsoleBrowser.open(browser, world.platform, options);
    await person.go(COUNTING);
    const region = person.page.getByRole("region", { name: "words_total" });
    await region.scrollIntoViewIfNeeded();
    await region.locator(".u-over").hover();
    await person.isSound();
    await person.picture(`own-metrics-${colorScheme}-${width}`);
  });

  it("says which line of code adds a metric where there is none", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email });
    await person.go("/o/acme/deployments/silent/metrics?show=service");
    const line = person.page.getByText("ctx.metrics.pages_total.add(1);");
    await line.scrollIntoViewIfNeeded();
    await person.isSound();
    await person.picture("own-metrics-none");
  });
});
