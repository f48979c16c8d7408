/** What pages of the console show when something is lost while somebody looks: the network, a deployment, the session. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { PASSWORD } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

describe.skipIf(skipped)(`what is lost while somebody looks at the console${skipped}`, () => {
  let browser: Browser;
  let world: World;
  const opened: ConsoleBrowser[] = [];

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("echo", await artifact());
    await world.call("echo", "/work/submit", { body: { text: "a task to list" } });
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  afterEach(async () => {
    for (const person of opened.splice(0)) {
      await person[Symbol.asyncDispose]();
    }
  });

  /** Somebody for each path, who sees the page with this heading. */
  const openAll = (
    paths: readonly string[],
    heading: RegExp,
    prepare?: (person: ConsoleBrowser) => Promise<unknown>,
  ) =>
    Promise.all(
      paths.map(async (path) => {
        const person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
        opened.push(person);
        await prepare?.(person);
        await person.go(path);
        await person.heading(heading);
        return { person, path };
      }),
    );

  it("is a deployment: each of its pages says so by itself", async () => {
    await world.deployed("leaving", await artifact());
    const pages = ["", "/tasks", "/log"].map((page) => `/o/acme/deployments/leaving${page}`);
    const people = await openAll(pages, /^leaving/);
    await world.client.deployments.deleteDeployment({ deployment: "leaving" });
    for (const { person } of people) {
      await person.heading("leaving was deleted");
      await person.isSound({ answers: [404] });
    }
  });

  it("is the network: pages that are open say so, others wait for it, and all go on by themselves", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/deployments");
    await person.heading("Deployments");
    await page.context().setOffline(true);
    const notice = page.getByText("The server cannot be reached. What you see may be old");
    await notice.waitFor();
    await page.getByRole("rowheader", { name: "echo" }).waitFor();
    await person.isSound({ isOffline: true });
    await person.picture("offline");
    await page.getByRole("link", { name: "Members" }).first().click();
    await person.heading("The server does not answer");
    await person.isSound({ isOffline: true });
    await person.picture("offline-page");
    await page.context().setOffline(false);
    await person.heading("Members");
    await page.getByRole("rowheader", { name: EMAIL }).waitFor();
    await notice.waitFor({ state: "detached" });
    await person.isSound({ isOffline: true });
  });

  it("is the network while something is sent: the form says so and keeps what was written", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/account");
    await person.heading("Your account");
    await page.context().setOffline(true);
    await person.fill("Name", "Ada L.");
    await person.press("Save name");
    await page.getByRole("alert").getByText("The server cannot be reached").waitFor();
    await person.isSound({ isOffline: true });
    await page.context().setOffline(false);
    await person.press("Save name");
    await page.getByText("Your name is saved").waitFor();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Ada L.");
  });

  it("is the session: pages lead to the sign-in by themselves, and back", async () => {
    const paths = ["/o/acme/tasks", "/o/acme/deployments/echo/log"];
    const people = await openAll(paths, /./, ({ page }) => page.clock.install());
    for (const { person } of people) {
      await person.page.getByText("live", { exact: true }).waitFor();
    }
    const others = "/api/v1/auth/sessions:endOthers";
    expect((await world.platform.call(others, {}, world.cookie)).status).toBe(200);
    for (const { person, path } of people) {
      // Pages that ask for nothing else ask for their session every two minutes.
      await person.page.clock.fastForward(120_000);
      await person.heading("Sign in");
      await person.fill("E-mail address", EMAIL);
      await person.fill("Password", PASSWORD);
      await person.press("Sign in");
      await person.page.getByText("live", { exact: true }).waitFor();
      expect(new URL(person.page.url()).pathname).toBe(path);
    }
  });

  const openMembers = ({ page }: ConsoleBrowser) =>
    page.getByRole("link", { name: "Members" }).first().click();
  const openPalette = ({ page }: ConsoleBrowser) => page.keyboard.press("Control+k");

  it.each([
    ["page", openMembers, "Members"],
    ["dialog", openPalette, "Deployments"],
  ])(
    "is the version that was opened: a %s that was not loaded comes with the new one",
    async (_, open, heading) => {
      await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
      const { page } = person;
      // Another version has other files: those of the one before are gone.
      let isGone = false;
      await page.route("**/console/assets/**", (route) =>
        isGone ? route.fulfill({ status: 404, body: "not here" }) : route.continue(),
      );
      page.on("request", (request) => {
        isGone &&= request.resourceType() !== "document";
      });
      await person.go("/o/acme/deployments");
      await page.getByRole("rowheader", { name: "echo" }).waitFor();
      isGone = true;
      await Promise.all([page.waitForEvent("load"), open(person)]);
      await person.heading(heading);
      await page.getByRole("rowheader").first().waitFor();
      await person.isSound({ answers: [404] });
    },
  );
});
