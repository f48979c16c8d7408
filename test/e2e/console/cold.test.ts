/**
 * Every page of the console, loaded by itself in a browser that has seen no other, looks as it does
 * after a way through all of them: none takes its styles from another that was visited before.
 */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { until } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";
import { Gallery, PEOPLE } from "./gallery.ts";
import { PAGES } from "./pages.ts";

const skipped = leftOut(chromiumMissing);

/** The types of the console's own project are no others' business: it is imported by its place. */
const ROUTER = new URL("../../../src/console/app/router.tsx", import.meta.url).href;

/** Pages of nobody in particular, and pages that only programs lead to. */
const OTHERS: readonly (readonly [path: string, heading: string])[] = [
  ["/sign-in", "Sign in"],
  ["/setup", "Set up this platform"],
  ["/invitation", "This invitation cannot be used"],
  ["/account-secured", "Your account is yours alone now"],
  ["/cli/authorize", "This link cannot be used"],
];

/**
 * The styles of what a page is made of: of the first element of each kind, by the tags and the
 * classes of itself and of what it is in.
 */
const STYLES = `(() => {
  const names = ["display", "position", "color", "backgroundColor", "fontFamily", "fontSize",
    "fontWeight", "lineHeight", "textAlign", "whiteSpace", "listStyleType", "padding",
    "gap", "borderWidth", "borderColor", "borderRadius", "maxHeight", "overflow", "boxShadow"];
  const kindOf = (one) => one.localName + [...one.classList].map((name) => "." + name).join("");
  const kinds = {};
  for (const one of document.querySelectorAll("#root, #root *")) {
    const kind = [one.parentElement.parentElement, one.parentElement, one].map(kindOf).join(" > ");
    const style = getComputedStyle(one);
    // Of margins not what auto has become, which depends on what is beside.
    const map = one.computedStyleMap();
    const margins = ["top", "right", "bottom", "left"].map((side) => map.get("margin-" + side));
    kinds[kind] ??= names.map((name) => name + ": " + style[name]).join("; ") + "; " + margins;
  }
  return kinds;
})()`;

/** Goes to a page without loading the document again, as a link does. */
const goWithin = (path: string) => `history.pushState({}, "", ${JSON.stringify(path)});
  dispatchEvent(new PopStateEvent("popstate", { state: {} }))`;

/** What comes and goes while a page is open. */
const PASSING = /\.(?:loading|skeleton-page|toasts|connection)\b/;

/** Of the kinds that a page has, so many are there both times; others come with time. */
const MIN_SHARE = 0.7;

describe.skipIf(skipped)(`a page of the console that is loaded by itself${skipped}`, () => {
  let browser: Browser;
  let gallery: Gallery;
  /** Somebody who has been on all pages. */
  let traveller: ConsoleBrowser;
  /** The headings of all pages, by their paths. */
  const pages = (): Map<string, string | RegExp> =>
    new Map([
      ...PAGES.map(
        ({ path, heading }) =>
          [typeof path === "string" ? path : path(gallery.ids), heading] as const,
      ),
      ...OTHERS,
    ]);

  beforeAll(async () => {
    browser = await sharedChromium();
    gallery = await Gallery.open();
    traveller = await openBrowser();
    await traveller.go("/o/acme");
    for (const [path, heading] of pages()) {
      await arrive(path, heading);
    }
  }, 180_000);
  afterAll(async () => {
    await closeContexts();
    await gallery?.[Symbol.asyncDispose]();
  });

  const openBrowser = () =>
    ConsoleBrowser.open(browser, gallery.world.platform, { email: PEOPLE.admin });
  /** Shown whole: a heading, and nothing that still loads. */
  const settle = async (person: ConsoleBrowser, heading: string | RegExp): Promise<void> => {
    await person.heading(heading);
    const loading = person.page.locator("#root :is(.loading, .skeleton-page, .log-skeleton)");
    await until(
      () => loading.count(),
      (count) => count === 0,
    );
  };
  const arrive = async (path: string, heading: string | RegExp): Promise<void> => {
    await traveller.page.evaluate(goWithin(path));
    await settle(traveller, heading);
  };
  const stylesOf = async ({ page }: ConsoleBrowser): Promise<Map<string, string>> => {
    const styles = await page.evaluate<Record<string, string>>(STYLES);
    return new Map(Object.entries(styles).filter(([kind]) => !PASSING.test(kind)));
  };

  it("is each that there is", async () => {
    const { createConsoleRouter } = await import(ROUTER);
    const routes = Object.keys(createConsoleRouter().routesByPath);
    const visited = [...pages().keys()].map((path) => path.split(/[?#]/)[0] ?? "");
    const missing = routes.filter((route) => {
      const pattern = new RegExp(`^${route.replace(/\/$/, "").replaceAll(/\$\w+/g, "[^/]+")}/?$`);
      return route !== "/" && !visited.some((path) => pattern.test(path));
    });
    // It has no page of its own: its tabs are.
    expect(missing).toEqual([]);
  });

  it("looks as it does after all others", async () => {
    const different: string[] = [];
    for (const [path, heading] of pages()) {
      await using stranger = await openBrowser();
      await stranger.go(path);
      await settle(stranger, heading);
      await arrive(path, heading);
      const [cold, warm] = [await stylesOf(stranger), await stylesOf(traveller)];
      const both = [...cold.keys()].filter((kind) => warm.has(kind));
      expect(both.length / cold.size, path).toBeGreaterThan(MIN_SHARE);
      for (const kind of both) {
        if (cold.get(kind) !== warm.get(kind)) {
          different.push(`${path}: ${kind}: ${cold.get(kind)} | ${warm.get(kind)}`);
        }
      }
    }
    expect(different).toEqual([]);
  }, 240_000);
});
