/** Lists of tasks follow what happens, through a restart of the server as well. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TaskStatus } from "../../../src/client/index.ts";
import { freePort } from "../../free-port.ts";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { start } from "../start/platform.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

/** For how long 200 tasks a second are submitted. */
const SECONDS = Number(process.env.TESSERA_LIVE_SECONDS ?? 5);
const PER_SECOND = 200;
/** Rows of the newest page. */
const SHOWN = 100;
const MIB = 2 ** 20;

describe.skipIf(skipped)(`a list of tasks in the console${skipped}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await sharedChromium();
  });
  afterAll(closeContexts);

  it("recovers by itself from a restart of the server", async () => {
    const port = String(await freePort());
    await using world = await World.start({ config: { port: Number(port) } });
    await world.deployed("tape", await artifact("tape"));
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/tasks");
    await world.call("tape", "/still/submit", { body: {} });
    await page.getByRole("cell", { name: "success" }).waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    await world.platform[Symbol.asyncDispose]();
    await page.getByText("reconnecting", { exact: true }).waitFor();
    await using again = await start(world.folder, { config: { port: Number(port) } });
    await page.getByText("live", { exact: true }).waitFor();
    const { status } = await again.call(
      "/api/v1/tasks",
      { deployment: "acme/tape", endpoint: "quick", arguments: { take: 1 }, delay: "3600s" },
      world.cookie,
    );
    expect(status).toBe(200);
    await page.getByRole("cell", { name: "scheduled" }).waitFor();
    await page.getByRole("cell", { name: "success" }).waitFor();
  });

  it(
    "shows the last state of each task while 200 change every second",
    async () => {
      await using world = await World.start();
      await world.deployed("tape", await artifact("tape"));
      const client = await world.callerClient();
      await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
      const { page } = person;
      await person.go("/o/acme/tasks");
      await page.getByText("No tasks yet").waitFor();
      const heapOf = async (): Promise<number> => {
        const session = await page.context().newCDPSession(page);
        await session.send("HeapProfiler.collectGarbage");
        const { usedSize } = await session.send("Runtime.getHeapUsage");
        return usedSize / MIB;
      };
      let early = 0;
      for (let second = 0; second < SECONDS; second += 1) {
        const next = performance.now() + 1_000;
        await client.tasks.submitTasks({
          deployment: "acme/tape",
          tasks: Array.from({ length: PER_SECOND }, (_, take) => ({
            endpoint: "quick",
            input: { case: "arguments", value: { take } },
          })),
        });
        if (second === 2) {
          early = await heapOf();
        }
        await page.waitForTimeout(Math.max(0, next - performance.now()));
      }
      await page.locator(`table[aria-rowcount="${SHOWN + 1}"]`).waitFor();
      await expect
        .poll(
          async () => {
            const { tasks } = await client.organizationTasks.listOrganizationTasks({
              organization: "acme",
              statuses: [TaskStatus.QUEUED, TaskStatus.RUNNING],
            });
            return tasks.length;
          },
          { timeout: 60_000, interval: 200 },
        )
        .toBe(0);
      const { tasks } = await client.organizationTasks.listOrganizationTasks({
        organization: "acme",
        pageSize: SHOWN,
      });
      const newest = tasks[0]?.taskId.slice(-12) ?? "";
      await page.getByRole("rowheader", { name: newest }).waitFor();
      await page.getByRole("cell", { name: "running" }).first().waitFor({ state: "detached" });
      for (let row = 1; row <= 20; row += 1) {
        const text = await page.getByRole("row").nth(row).innerText();
        expect(text).toContain(tasks[row - 1]?.taskId.slice(-12));
        expect(text).toContain("success");
      }
      expect((await heapOf()) - early).toBeLessThan(10);
    },
    120_000 + SECONDS * 2_000,
  );
});
