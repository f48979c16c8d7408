/** Pages about deployments follow them by one stream each, through a restart of the server as well. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../free-port.ts";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { start } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

describe.skipIf(skipped)(`deployments that are followed in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;
  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("echo", await artifact());
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  const isLive = (page: Page) => page.getByText("live", { exact: true }).waitFor();

  it("change in their list as they change, without being asked for again", async () => {
    const { deployments } = world.client;
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const asked = callsOf(page);
    await person.go("/o/acme/deployments");
    await isLive(page);
    await person.isSound();
    await deployments.createDeployment({ name: "another" });
    const row = page.getByRole("row", { name: /^another / });
    await row.getByText("stopped", { exact: true }).waitFor();
    await deployments.updateDeployment({
      deployment: { name: "another", settings: { maxWorkers: 7 } },
    });
    await row.getByText("min 1, max 7").waitFor();
    await deployments.stopDeployment({ deployment: "echo" });
    const echo = page.getByRole("row", { name: /^echo / });
    await echo.getByText("stopped", { exact: true }).waitFor();
    await deployments.startDeployment({ deployment: "echo" });
    await echo.getByText("ready", { exact: true }).waitFor();
    await deployments.deleteDeployment({ deployment: "another" });
    await row.waitFor({ state: "detached" });
    expect(asked.filter((path) => /\/(List|Get|Watch)Deployments?$/.test(path))).toEqual([
      "/tessera.v1.DeploymentService/ListDeployments",
      "/tessera.v1.DeploymentService/WatchDeployments",
    ]);
  });

  it("change on the overview, and on the page of one", async () => {
    const { deployments } = world.client;
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme");
    await isLive(page);
    await person.isSound();
    await deployments.createDeployment({ name: "third" });
    await page.getByRole("listitem").getByRole("link", { name: "third" }).click();
    await person.heading("third");
    await isLive(page);
    await person.isSound();
    await deployments.updateDeployment({ deployment: { name: "third", authorization: true } });
    await page.getByRole("definition").getByText("need a token").waitFor();
    await world.deployed("third", await artifact());
    const workers = page.getByRole("region", { name: "Workers and their machines" });
    await workers.getByRole("cell", { name: "ready" }).first().waitFor();
    await person.isSound();
    await person.picture("placements");
    await page.getByRole("link", { name: "Revisions" }).click();
    await person.heading("third: revisions");
    await world.deployed("third", await artifact());
    await page.getByRole("row", { name: /^r2 serving/ }).waitFor();
    await deployments.deleteDeployment({ deployment: "third" });
    await person.heading("third was deleted");
    await person.isSound();
    await person.picture("deleted");
    await page.getByRole("link", { name: "See the deployments that are left" }).click();
    await person.heading("Deployments");
    await isLive(page);
    await person.go("/o/acme/deployments/third");
    await person.heading("It is not here");
    await page.getByText('deployment "third" does not exist').waitFor();
  });

  it("take one stream of a tab, also on pages with a stream of their own", async () => {
    const { deployments } = world.client;
    await deployments.createDeployment({ name: "fourth" });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const asked = callsOf(page);
    const watched = () => asked.splice(0).filter((path) => path.includes("/Watch"));
    await person.go("/o/acme/deployments/fourth");
    await isLive(page);
    expect(watched()).toEqual(["/tessera.v1.DeploymentService/WatchDeployments"]);
    await person.go("/o/acme/deployments/echo/tasks");
    await page.getByText("No tasks yet").waitFor();
    expect(watched()).toEqual(["/tessera.v1.OrganizationTaskService/WatchTasks"]);
    await person.go("/o/acme/deployments/fourth/log");
    await isLive(page);
    // A second call only reads whether there is a line, and ends.
    expect(new Set(watched())).toEqual(
      new Set(["/tessera.v1.DeploymentService/WatchDeploymentLogs"]),
    );
    await deployments.deleteDeployment({ deployment: "fourth" });
    await person.heading("fourth was deleted");
  });

  it("are followed again after a restart, which shows what has gone and who is signed out", async () => {
    const port = await freePort();
    await using world = await World.start({ config: { port } });
    const { deployments } = world.client;
    await deployments.createDeployment({ name: "goes" });
    await deployments.createDeployment({ name: "stays" });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await using other = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await using leaver = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const people = [person, other, leaver];
    await person.go("/o/acme/deployments/goes");
    await other.go("/o/acme/deployments");
    await leaver.go("/o/acme/deployments");
    await Promise.all(people.map(({ page }) => isLive(page)));
    const watching = "**/tessera.v1.DeploymentService/WatchDeployments";
    for (const { page } of people) {
      await page.route(watching, (route) => route.abort());
    }
    await world.platform[Symbol.asyncDispose]();
    for (const { page } of people) {
      await page.getByText("reconnecting", { exact: true }).waitFor();
    }
    await leaver.page.context().clearCookies();
    await using _again = await start(world.folder, { config: { port } });
    await deployments.deleteDeployment({ deployment: "goes" });
    for (const { page } of people) {
      await page.unroute(watching);
    }
    await person.heading("goes was deleted");
    await isLive(other.page);
    await other.page.getByRole("link", { name: "stays" }).waitFor();
    await other.page.getByRole("link", { name: "goes" }).waitFor({ state: "detached" });
    await leaver.heading("Sign in");
  });
});

/** The paths that the page calls from now on. */
function callsOf(page: Page): string[] {
  const paths: string[] = [];
  page.on("request", (request) => paths.push(new URL(request.url()).pathname));
  return paths;
}
