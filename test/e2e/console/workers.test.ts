import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTesseraClient, DeploymentStatus, WorkerPlace } from "../../../src/client/index.ts";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { TestWorker } from "../workers/test-worker.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

const GIBIBYTE = 1024 ** 3;

/** A node as it tells of itself, with two GPUs. */
const machineOf = (index: number) => ({
  nodeId: `node-${index}`,
  machine: `node-${index}`,
  url: `http://10.0.0.${index}:3000`,
  startedAt: new Date(Date.now() - 3_600_000).toISOString(),
  heardAt: new Date().toISOString(),
  facts: {
    ...{ version: "1.2.3", sandbox: "kernel", workers: 12, maxWorkers: 128, waiting: 0 },
    ...{ memoryBytes: GIBIBYTE, maxMemoryBytes: 48 * GIBIBYTE },
    ...{ diskBytes: 500 * GIBIBYTE, freeDiskBytes: 300 * GIBIBYTE },
    labels: { gpu: "h200", zone: "rack-b" },
    load: {
      ...{ processors: 8, busyProcessors: 3.5 },
      ...{ memoryBytes: 64 * GIBIBYTE, usedMemoryBytes: 60 * GIBIBYTE },
    },
    gpus: [
      { index: 0, name: "NVIDIA H200", dealt: 1, holders: ["acme/away"] },
      { index: 1, name: "NVIDIA H200", dealt: 0.5, holders: ["acme/away"] },
    ],
  },
});

describe.skipIf(skipped)(`workers in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    const settings = { place: WorkerPlace.REMOTE, requires: { gpu: "*" } };
    await world.deploy("away", await artifact(), { settings });
    await world.until("away", ({ status }) => status === DeploymentStatus.DEGRADED);
    await world.deployed("near", await artifact());
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  it("are joined by the command that a new token brings, and shown with where they run", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme/deployments/away");
    const workers = page.getByRole("region", { name: "Workers and their machines" });
    await workers.getByText("none", { exact: true }).first().waitFor();
    const { origin } = new URL(page.url());
    const command = (token: string) =>
      `TESSERA_WORKER_TOKEN=${token} npx tessera-platform worker --join ${origin} --deployment away --label gpu=VALUE`;
    await page.getByText(command("TOKEN")).waitFor();
    await person.isSoundInAllWindows("workers-none");
    await page.getByRole("link", { name: "a worker token" }).click();
    await person.heading("API tokens");
    expect(await page.getByRole("checkbox", { name: /^Worker/ }).isChecked()).toBe(true);
    expect(await page.getByRole("checkbox", { name: "away" }).isChecked()).toBe(true);
    await person.isSound();
    await person.fill("Name", "gpu machine");
    await person.press("Submit");
    const shown = await page.getByText(/^TESSERA_WORKER_TOKEN=/).innerText();
    const [, value = ""] = /=(\S+) /.exec(shown) ?? [];
    expect(shown).toBe(command(value));
    await person.isSound();
    await person.press("Done");
    expect(new URL(page.url()).search).toBe("");

    await using worker = new TestWorker(world.platform.url, value);
    const runtime = { hostname: "gpu-7", platform: "linux-x64" };
    await worker.register({ deployment: "away", labels: { gpu: "h200" }, runtime });
    await worker.open();
    await person.go("/o/acme/deployments/away");
    const row = page.getByRole("row", { name: /gpu-7/ });
    await row.getByText("linux-x64, gpu=h200").waitFor();
    await row.getByText("ready", { exact: true }).waitFor();
    await person.isSoundInAllWindows("workers-joined");
  });

  it("of a node are shown as such", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await person.go("/o/acme/deployments/near");
    const workers = person.page.getByRole("region", { name: "Workers and their machines" });
    await workers.getByText("node", { exact: true }).waitFor();
    await person.isSoundInAllWindows("workers-near");
  });

  it("of ten machines are on one screen, each with its load in a line", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const nodes = Array.from({ length: 10 }, (_, index) => machineOf(index));
    await page.route("**/ListNodes", (route) => route.fulfill({ json: { nodes } }));
    await page.setViewportSize({ width: 1280, height: 800 });
    await person.go("/o/acme/machines");
    const table = page.getByRole("region", { name: "Machines with their workers" });
    const last = table.getByRole("row", { name: /^node-9/ });
    await last.getByText("3.5 of 8 cores", { exact: true }).waitFor();
    await last.getByText("60 of 64 GiB, full").waitFor();
    await last.getByText("12 of 128").waitFor();
    const box = await last.boundingBox();
    expect((box?.y ?? 800) + (box?.height ?? 0)).toBeLessThanOrEqual(800);
    // What has each GPU is a click away.
    await last.getByText("1.5 of 2").click();
    await last.getByText("0.5 of it: acme/away").waitFor();
    await person.isSoundInAllWindows("machines");
  });

  it("that a launcher starts are shown with what is wanted, and why they do not come", async () => {
    const fields = { access: ["launch"], deployments: ["away"] };
    const { value: token } = await world.platform.createToken(world.cookie, fields);
    const { launchers } = createTesseraClient({ url: world.platform.url, token });
    const { deploymentId } = await world.client.deployments.getDeployment({ deployment: "away" });
    const reason = "a machine could not be started: sbatch: error: QOSMaxSubmitJobPerUserLimit";
    const counts = { machines: 12, starting: 2, joined: 7, failed: 3, reason };
    const facts = { launcher: crypto.randomUUID(), on: "slurm", hostname: "login-1" };
    await launchers.reportLaunches({ ...facts, reports: [{ deploymentId, ...counts }] });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    await person.go("/o/acme/machines");
    const table = person.page.getByRole("region", { name: "What launchers do" });
    await table.getByText("slurm, by login-1").waitFor();
    await table.getByText("failing", { exact: true }).waitFor();
    await table.getByText(reason).waitFor();
    await launchers.reportLaunches({ ...facts, reports: [{ deploymentId, ...counts }] });
    await person.isSoundInAllWindows("launches");
  });
});
