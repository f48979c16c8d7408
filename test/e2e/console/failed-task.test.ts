/** A new user with the link of a failed task: reads why it failed, and mends it by keyboard alone. */
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";

/** How long the answers may take, from the link on. */
const MAX_READ_MS = 15_000;
/** How long memory, a secret and all retries may take by keyboard. */
const MAX_MENDED_MS = 60_000;
/** Tab is pressed so often before something counts as out of reach. */
const MAX_TABS = 60;

describe.skipIf(skipped)(`a failed task, to who has its link alone${skipped}`, () => {
  let browser: Browser;
  let world: World;
  let link: string;

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("tape", await artifact("tape"), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
    const ids = await Promise.all([1, 2, 3].map(() => fail()));
    link = `/o/acme/deployments/tape/tasks/${ids[0]}`;
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  const fail = async (): Promise<string> => {
    const { json } = await world.call("tape", "/hiss/submit", { body: {} });
    await world.call("tape", `/hiss/get?task_id=${json.task_id}&wait=30`);
    return json.task_id;
  };

  it("says what failed, why, where in the author's code, and what else failed so, in 15 s and without scrolling", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: EMAIL,
      viewport: { width: 1280, height: 800 },
    });
    const { page } = person;
    const beganMs = performance.now();
    await person.go(link);
    const answers = [
      page.getByRole("heading", { name: "Task of hiss" }),
      page.locator(".task-about").getByText("failure", { exact: true }),
      page.locator(".attempt-failure").getByText("שלום"),
      page
        .locator(".stack .own")
        .getByText(/tape\.[jt]s:\d+:\d+/)
        .first(),
      page.getByRole("link", { name: "2 other tasks failed with this error in the last hour" }),
    ];
    for (const answer of answers) {
      await answer.waitFor();
      const box = await answer.boundingBox();
      expect((box?.y ?? 0) + (box?.height ?? Number.NaN), String(answer)).toBeLessThan(800);
    }
    expect(performance.now() - beganMs).toBeLessThan(MAX_READ_MS);
    expect(await page.evaluate("scrollY")).toBe(0);
    await person.picture("failed-task");
  });

  it("is what an alert is pending for with others, until it has held for long enough", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await person.go("/o/acme");
    // Fewer are no trend.
    const failed = page.locator(".numbers > div", { hasText: /^Failed tasks([3-9]|\d\d)/ });
    await failed.waitFor({ timeout: 30_000 });
    const rule = { name: "failing", kind: "failures", threshold: 1, hold: "3600s" };
    const made = await world.platform.call("/api/v1/alertRules", { rule }, world.cookie);
    expect(made.status).toBe(200);
    await person.go("/o/acme/alerts");
    // A node looks for rules that are due every ten seconds.
    await page.getByRole("link", { name: "1 pending" }).waitFor({ timeout: 30_000 });
    await page.getByText("0 firing", { exact: true }).waitFor();
    const alert = page.getByRole("row").filter({ hasText: "deployment tape" });
    await alert.getByText(/^in (1 h|\d+ min)$/).waitFor();
    await page.getByRole("row").filter({ hasText: "pending (1)" }).waitFor();
    await person.isSound();
    await person.go("/o/acme");
    await page.getByText(/^hiss: .* \(alert failing, pending\)$/).waitFor();
    await world.client.alerts.deleteAlertRule({ organization: "acme", name: rule.name });
  });

  it("is mended by keyboard alone in 60 s: more memory, a secret, and all of its kind retried", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const { keyboard } = page;
    /** Goes on to something by Tab, from where the focus is. */
    const reach = async (wanted: Locator): Promise<void> => {
      await wanted.waitFor();
      for (let tabs = 0; tabs < MAX_TABS; tabs += 1) {
        if (await wanted.evaluate((one) => one.matches(":focus"))) {
          return;
        }
        await keyboard.press("Tab");
      }
      throw new Error(`${wanted} is out of reach`);
    };
    const press = async (wanted: Locator): Promise<void> => {
      await reach(wanted);
      await keyboard.press("Enter");
    };
    const beganMs = performance.now();
    await person.go(link);
    await person.heading("Task of hiss");

    await keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).waitFor();
    await keyboard.type("settings of tape");
    await page.getByRole("option", { name: "Settings of tape", selected: true }).waitFor();
    await keyboard.press("Enter");
    await person.heading("tape: settings");
    await reach(page.getByLabel("Memory", { exact: true }));
    await keyboard.press("Control+a");
    await keyboard.type("640");
    await keyboard.press("Enter");
    await page.getByText("Saved the settings of tape").waitFor();

    await press(page.getByRole("button", { name: "Set secret" }));
    const dialog = page.getByRole("dialog");
    await reach(dialog.getByLabel("Name"));
    await keyboard.type("API_KEY");
    await reach(dialog.getByLabel("Value"));
    await keyboard.type("a secret");
    await press(dialog.getByRole("button", { name: "Set", exact: true }));
    await page.getByText("API_KEY is set").waitFor();

    // The browser's own key, Alt and the left arrow, which it has only with a window.
    await page.goBack();
    await person.heading("Task of hiss");
    await press(
      page.getByRole("link", { name: "2 other tasks failed with this error in the last hour" }),
    );
    await person.heading("Tasks");
    await press(page.getByRole("button", { name: "All tasks of this list" }));
    await press(page.getByRole("menuitem", { name: "Retry 3 tasks…" }));
    await press(dialog.getByRole("button", { name: "Retry 3 tasks" }));
    await page.getByText("3 tasks retried").waitFor();
    expect(performance.now() - beganMs).toBeLessThan(MAX_MENDED_MS);
    const { json } = await world.platform.call("/api/v1/deployments/tape", undefined, world.cookie);
    expect(json.settings).toMatchObject({ memory_mib: 640, secret_names: ["API_KEY"] });
  });
});
