/** A person in Chromium who looks at the console of a real platform. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { cookieOf, PASSWORD, type Platform } from "../start/platform.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Runs axe in the page: the rules that are broken, with the elements that break them. */
const axeFindsBy = (options: object): string => `axe.run(${JSON.stringify(options)})
  .then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`;

/** The rules that depend on light and dark. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** Runs axe in a page, outside of its policy, as a browser's extension does. */
export async function axeFinds(page: Page, rules?: readonly string[]): Promise<string[]> {
  if ((await page.evaluate("typeof axe")) === "undefined") {
    await page.evaluate(AXE);
  }
  const runOnly = rules && { type: "rule", values: rules };
  return page.evaluate<string[]>(
    axeFindsBy({ resultTypes: ["violations"], selectors: false, runOnly }),
  );
}

/** Finds the elements that stand out of the page, when it can be scrolled sideways. */
const TOO_WIDE = `document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
  [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth)
    .map((one) => one.outerHTML.slice(0, 200))`;

/** The windows that a page is looked at in. */
const WINDOWS = [
  { colorScheme: "light", width: 1280 },
  { colorScheme: "dark", width: 1280 },
  { colorScheme: "dark", width: 390 },
  { colorScheme: "light", width: 390 },
] as const;

/** What the browser complains of by itself, and the page expects. */
interface Expected {
  readonly answers?: readonly number[];
  readonly isOffline?: boolean;
  /** The rules of axe that the page is held to. Default: all. */
  readonly rules?: readonly string[];
}

/** Where screenshots are written; none without it. */
const PICTURES = process.env.TESSERA_SCREENSHOTS;

export class ConsoleBrowser implements AsyncDisposable {
  readonly page: Page;
  /** Errors of scripts, and what the policy of the page refused. */
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;
  readonly #url: string;

  private constructor(context: BrowserContext, page: Page, url: string) {
    this.#context = context;
    this.page = page;
    this.#url = url;
    page.setDefaultTimeout(30_000);
    page.on("pageerror", (err) => this.complaints.push(err.message));
    page.on("console", (message) => {
      if (message.type() === "error") {
        this.complaints.push(message.text());
      }
    });
  }

  /** Opens a window, signed in as this person. */
  static async open(
    browser: Browser,
    platform: Platform,
    { email, ...options }: BrowserContextOptions & { readonly email?: string } = {},
  ): Promise<ConsoleBrowser> {
    const url = platform.started.url;
    const context = await browser.newContext({ reducedMotion: "reduce", ...options });
    if (email !== undefined) {
      const { cookie = "" } = cookieOf(await platform.signIn(email, PASSWORD));
      const [name = "", value = ""] = cookie.split("=");
      await context.addCookies([{ name, value, url }]);
    }
    return new ConsoleBrowser(context, await context.newPage(), url);
  }

  go(path: string) {
    return this.page.goto(this.#url + path);
  }

  /** Waits for the page with this heading. */
  heading(name: string | RegExp) {
    return this.page.getByRole("heading", { level: 1, name }).waitFor();
  }

  press(name: string | RegExp) {
    return this.page.getByRole("button", { name, exact: typeof name === "string" }).click();
  }

  fill(label: string, text: string) {
    return this.page.getByLabel(label, { exact: true }).fill(text);
  }

  /**
   * Expects that axe finds nothing, that nothing stands out of the page, and that nothing
   * complained. The browser complains by itself of answers such as 401, which pages expect where
   * they ask who is there, and of a network that is gone.
   */
  async isSound({ answers = [], isOffline = false, rules }: Expected = {}): Promise<void> {
    expect(await this.page.evaluate(TOO_WIDE)).toEqual([]);
    expect(await axeFinds(this.page, rules)).toEqual([]);
    const isExpected = (text: string) =>
      (isOffline && text.includes("net::ERR_INTERNET_DISCONNECTED")) ||
      answers.some((status) => text.includes(`with a status of ${status} `));
    expect(this.complaints.filter((text) => !isExpected(text))).toEqual([]);
  }

  /**
   * The same in light and dark, wide and narrow. What differs in the second window of a width are
   * the colours.
   */
  async isSoundInAllWindows(name: string, expected?: Expected): Promise<void> {
    const looked = new Set<number>();
    for (const { colorScheme, width } of WINDOWS) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.setViewportSize({ width, height: 800 });
      await this.isSound({ ...expected, ...(looked.has(width) && { rules: COLOUR_RULES }) });
      looked.add(width);
      await this.picture(`${name}-${colorScheme}-${width}`);
    }
  }

  async picture(name: string): Promise<void> {
    if (PICTURES !== undefined) {
      await this.page.screenshot({ path: `${PICTURES}/${name}.png` });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close();
  }
}
