/** Every page of the console as each person sees it, in light and dark, wide and narrow. */
import { readFile } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";
import { BACKWARDS, Gallery, PEOPLE, type Role } from "./gallery.ts";
import { type ListedPage, PAGES } from "./pages.ts";

const skipped = leftOut(chromiumMissing);

describe.skipIf(skipped)(`each page of the console${skipped}`, () => {
  let browser: Browser;
  let gallery: Gallery;
  /** Finds text that the override in a name before it turns around. */
  let garbled: string;
  const people = new Map<Role, ConsoleBrowser>();
  /** Method and path of what the pages have asked the server for. */
  const called = new Set<string>();

  beforeAll(async () => {
    browser = await sharedChromium();
    garbled = await readFile(new URL("./garbled.js", import.meta.url), "utf8");
    gallery = await Gallery.open();
    for (const [role, email] of Object.entries(PEOPLE)) {
      const { platform } = gallery.world;
      const person = await ConsoleBrowser.open(browser, platform, { email });
      person.page.on("request", (request) => {
        if (["fetch", "xhr", "eventsource"].includes(request.resourceType())) {
          called.add(`${request.method()} ${new URL(request.url()).pathname}`);
        }
      });
      people.set(role as Role, person);
    }
  });
  afterAll(async () => {
    await closeContexts();
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
    await person.isSoundInAllWindows(name);
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
    } else if (role === "member" && listed.isForOperators) {
      await person.page.getByRole("heading", { name: "This is for operators" }).waitFor();
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

  it("is for members: who is in no organization is told how to come into one", async () => {
    const person = await visit("newcomer", "/");
    await person.heading("You are in no organization yet");
    await look(person, "newcomer");
    await person.press("Sign out");
    await person.heading("Sign in");
  });

  it("has called nothing but the documented API", async () => {
    const { platform } = gallery.world;
    const documented = [
      ...operationsOf((await platform.call("/docs.json")).json),
      ...operationsOf((await gallery.world.call(gallery.ids.deployment, "/docs.json")).json),
      // The document itself, and how people sign in, before there is anybody to ask for.
      /^GET \/(?:docs\.json|auth\/methods)$/,
    ];
    const others = [...called].filter((call) => !documented.some((one) => one.test(call)));
    expect(others).toEqual([]);
    expect([...called]).toContain("POST /tessera.v1.OrganizationTaskService/WatchTasks");
    expect([...called]).toContain("GET /finish/get");
  });
});

/** The operations of an OpenAPI document: each by its method and path, and by its RPC. */
function operationsOf({ paths = {} }: { readonly paths?: object }): RegExp[] {
  const escaped = (path: string): string => path.replace(/[.:]/g, "\\$&");
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, { readonly operationId: string }>).flatMap(
      ([method, { operationId }]) => [
        new RegExp(`^${method.toUpperCase()} ${escaped(path).replace(/\{[^}]*\}/g, "[^/]+")}$`),
        new RegExp(`^POST /tessera\\.v1\\.${escaped(operationId.replace(".", "/"))}$`),
      ],
    ),
  );
}
