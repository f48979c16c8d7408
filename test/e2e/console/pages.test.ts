/** Every page of the console as each person sees it, in light and dark, wide and narrow. */
import { readFile } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { chromiumMissing, launchChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";
import { BACKWARDS, Gallery, PEOPLE, type Role } from "./gallery.ts";
import { type ListedPage, PAGES } from "./pages.ts";

const skipped = leftOut(chromiumMissing);

const WINDOWS = [
  { colorScheme: "light", width: 1280 },
  { colorScheme: "dark", width: 1280 },
  { colorScheme: "dark", width: 390 },
  { colorScheme: "light", width: 390 },
] as const;

describe.skipIf(skipped)(`each page of the console${skipped}`, () => {
  let browser: Browser;
  let gallery: Gallery;
  /** Finds text that the override in a name before it turns around. */
  let garbled: string;
  const people = new Map<Role, ConsoleBrowser>();

  beforeAll(async () => {
    browser = await launchChromium();
    garbled = await readFile(new URL("./garbled.js", import.meta.url), "utf8");
    gallery = await Gallery.open();
    for (const [role, email] of Object.entries(PEOPLE)) {
      const { platform } = gallery.world;
      people.set(role as Role, await ConsoleBrowser.open(browser, platform, { email }));
    }
  });
  afterAll(async () => {
    await browser?.close();
    await gallery?.[Symbol.asyncDispose]();
  });

  /** Opens a page as somebody, in a wide window. */
  const visit = async (role: Role, path: string): Promise<ConsoleBrowser> => {
    const person = people.get(role) as ConsoleBrowser;
    await person.page.goto("about:blank");
    await person.page.setViewportSize({ width: 1280, height: 800 });
    person.complaints.length = 0;
    await person.go(path);
    return person;
  };
  const pathOf = ({ path }: ListedPage): string =>
    typeof path === "string" ? path : path(gallery.ids);

  const look = async (person: ConsoleBrowser, name: string): Promise<void> => {
    const { page } = person;
    for (const { colorScheme, width } of WINDOWS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await person.isSound();
      await person.picture(`${name}-${colorScheme}-${width}`);
    }
    expect(await page.title()).not.toBe("taken");
    expect(await page.evaluate(garbled)).toEqual([]);
  };

  it.each(
    PAGES.flatMap((listed, index) =>
      (["admin", "member"] as const).map((role) => ({ listed, role, index, ...listed })),
    ),
  )("is sound for the $role: $index, $heading", async ({ listed, role, index, heading }) => {
    const person = await visit(role, pathOf(listed));
    await person.heading(heading);
    if (role === "member" && listed.isForAdmins) {
      await person.page.getByRole("heading", { name: "This is for admins" }).waitFor();
    } else {
      await listed.open?.(person);
    }
    await look(person, `${index}-${role}`);
  });

  it("shows nothing of an organization to a stranger", async () => {
    const missing = "There is no such page";
    const hidden = PAGES.filter(({ isPublic }) => isPublic !== true);
    for (const listed of hidden) {
      const person = await visit("stranger", pathOf(listed));
      await person.heading(missing);
      const text = await person.page.locator("body").innerText();
      expect(text).not.toContain(gallery.ids.deployment);
      expect(text).not.toContain(BACKWARDS);
    }
    await look(await visit("stranger", "/o/acme"), "stranger");
  });
});
