import type { Browser } from "playwright-core";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AlertKind, AlertReceiverKind } from "../../../src/client/index.ts";
import { type Received, Receiver } from "../../hosting/webhooks/receiver.ts";
import { leftOut } from "../../needed.ts";
import { artifact, call, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);

describe.skipIf(skipped)(`webhooks in the console${skipped}`, () => {
  let browser: Browser;
  let receiver: Receiver;
  let world: World;

  beforeAll(async () => {
    browser = await sharedChromium();
    receiver = await Receiver.start();
    world = await World.start({ env: { TESSERA_ALLOW_EGRESS: "127.0.0.1" } });
    await world.deployed("echo", await artifact());
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
    await receiver?.[Symbol.asyncDispose]();
  });

  it("are made with a secret that is shown once, tested, rotated, and their deliveries sent again", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: "ada@example.com",
    });
    const { page } = person;
    await person.go("/o/acme/deployments/echo/webhooks");
    await page.getByText("A webhook is sent").waitFor();
    await page.getByRole("button", { name: "Create webhook" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("app");
    await dialog.getByLabel("Address", { exact: true }).fill("http://10.0.0.1/");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("is a private address").waitFor();
    await dialog.getByLabel("Address", { exact: true }).fill(receiver.url);
    await dialog.getByRole("button", { name: "Create" }).click();
    const secret = (await dialog.getByText(/^whsec_/).textContent()) ?? "";
    await person.isSound({ answers: [400] });
    await page.keyboard.press("Escape");
    const row = page.getByRole("row", { name: /^app/ });
    await row.getByRole("button", { name: "Actions for app" }).click();
    await page.getByRole("menuitem", { name: "Send test" }).click();
    const [{ body, headers }] = (await receiver.has(1)) as [Received];
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toBeTruthy();
    const test = page.getByRole("row", { name: /a test/ });
    await test.getByText("delivered", { exact: true }).waitFor();
    await test.getByText("204").waitFor();
    await test.getByRole("button", { name: /^Send again/ }).click();
    await receiver.has(2);
    expect(new Set(receiver.ids).size).toBe(1);
    await person.isSound({ answers: [400] });
    await row.getByRole("button", { name: "Actions for app" }).click();
    await page.getByRole("menuitem", { name: "Rotate" }).click();
    await dialog.getByRole("button", { name: "Rotate" }).click();
    expect(await dialog.getByText(/^whsec_/).textContent()).not.toBe(secret);
    await page.keyboard.press("Escape");

    // All that a page shows ends at one edge on a very wide screen.
    await page.setViewportSize({ width: 2560, height: 1440 });
    const ends = await page
      .locator(".page-header, .tabs, .section-header, .data-table")
      .evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().right)));
    expect(ends.length).toBeGreaterThan(4);
    expect(new Set(ends).size).toBe(1);
    // No column is so wide that its row cannot be followed.
    const widths = await page
      .locator(".data-table td")
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width));
    expect(Math.max(...widths)).toBeLessThan(800);
    await page.setViewportSize({ width: 1280, height: 800 });

    const submitted = await call(world.platform, "echo", "/work/submit", { body: { text: "x" } });
    await receiver.has(3);
    await person.go(`/o/acme/deployments/echo/tasks/${submitted.json.task_id}`);
    // Each webhook has an address of its own.
    await page.getByRole("link", { name: /^webhook app/ }).click();
    await page.getByRole("heading", { name: "app", exact: true }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/o/acme/deployments/echo/webhooks/app");
    await page.getByRole("row", { name: submitted.json.task_id.slice(-12) }).waitFor();
    await page.getByText("ada@example.com").last().waitFor();
    await person.isSoundInAllWindows("webhook", { answers: [400] });
    await page.getByText("204").first().waitFor();
    await person.go("/o/acme/deployments/echo/webhooks/none");
    await page.getByText("There is no webhook none, or it was deleted.").waitFor();
    const crumbs = page.getByRole("navigation", { name: "Breadcrumb" });
    await crumbs.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "app", exact: true }).waitFor();
  });

  it("have deliveries that open in their place, by a click and by keyboard, which a link shows", async () => {
    const { webhooks } = world.client;
    const name = { deployment: "echo", name: "opened" };
    await webhooks.createWebhook({
      deployment: "echo",
      webhook: { name: "opened", url: receiver.url },
    });
    const sent = receiver.received.length;
    await webhooks.testWebhook(name);
    await receiver.has(sent + 1);
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: "ada@example.com",
    });
    const { page } = person;
    await person.go("/o/acme/deployments/echo/webhooks/opened");
    const row = page.getByRole("row", { name: /a test/ });
    const message = page.getByRole("region", { name: "Message", exact: true });
    await row.getByText("delivered", { exact: true }).click();
    await message.getByText("webhook.test").waitFor();
    expect(new URL(page.url()).searchParams.get("open")).toBe(receiver.ids.at(-1));
    await person.isSoundInAllWindows("webhook-delivery");
    await page.reload();
    await message.waitFor();
    await row.focus();
    await page.keyboard.press("Escape");
    await message.waitFor({ state: "detached" });
    // The keys of all tables.
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await message.waitFor();
    await row.getByText("delivered", { exact: true }).click();
    await message.waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("");

    // What is rarely done is seen by who points at the row, reaches it by keyboard, or opens it on a phone.
    const send = row.getByRole("button", { name: /^Send again/ });
    const opacity = () =>
      page.evaluate<string>('getComputedStyle(document.querySelector(".of-row")).opacity');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("heading", { name: "Deliveries" }).click();
    await expect.poll(opacity).toBe("0");
    await row.hover();
    await expect.poll(opacity).toBe("1");
    await page.getByRole("heading", { name: "Deliveries" }).hover();
    await row.getByRole("button", { name: "a test" }).focus();
    await page.keyboard.press("Tab");
    expect(await send.evaluate((it) => it.matches(":focus"))).toBe(true);
    expect(await opacity()).toBe("1");
    await page.setViewportSize({ width: 390, height: 844 });
    await send.waitFor({ state: "hidden" });
    await row.getByRole("button", { name: "a test" }).click();
    await send.waitFor();
    await webhooks.deleteWebhook(name);
  });

  it("are changed by two people at once, who are both told, and neither change is lost unseen", async () => {
    const { webhooks } = world.client;
    const webhook = { name: "shared", url: receiver.url };
    await webhooks.createWebhook({ deployment: "echo", webhook });
    const open = async () => {
      const person = await ConsoleBrowser.open(browser, world.platform, {
        email: "ada@example.com",
      });
      await person.go("/o/acme/deployments/echo/webhooks");
      await person.press("Actions for shared");
      await person.page.getByRole("menuitem", { name: "Edit" }).click();
      return person;
    };
    await using one = await open();
    await using other = await open();
    const dialog = one.page.getByRole("dialog");
    await dialog.getByLabel("Address", { exact: true }).fill(`${receiver.url}/one`);
    await other.page.getByLabel("Success").uncheck();
    await other.page.getByLabel("Cancelled").uncheck();
    await other.page.getByLabel("Endpoint").selectOption("work");
    await other.press("Save");
    await one.press("Save");
    await dialog
      .getByText(`It is now: ${receiver.url}, events: failed tasks of work. Save again`)
      .waitFor();
    await one.isSoundInAllWindows("webhook-edit", { answers: [409] });
    await dialog.getByLabel("Success").uncheck();
    await one.press("Save");
    const row = other.page.getByRole("row", { name: /^shared/ });
    await row.getByText(`${receiver.url}/one`).waitFor();
    await row.getByText("failed and cancelled tasks", { exact: true }).waitFor();
    await one.page
      .getByRole("row", { name: /^shared/ })
      .getByText("cancelled tasks")
      .waitFor();
    await webhooks.deleteWebhook({ deployment: "echo", name: "shared" });
  });

  it("are in the overview while they fail, with what they answered", async () => {
    const { webhooks } = world.client;
    await using failing = await Receiver.start();
    failing.answer = (res) => res.writeHead(503).end("come back later");
    const webhook = { name: "broken", url: failing.url };
    await webhooks.createWebhook({ deployment: "echo", webhook });
    await webhooks.testWebhook({ deployment: "echo", name: "broken" });
    await failing.has(1);
    await expect
      .poll(async () => {
        const found = await webhooks.listFailingWebhooks({});
        return found.webhooks.map(({ deployment, webhook: one, answer }) =>
          [deployment, one?.name, answer?.status].join(" "),
        );
      })
      .toEqual(["echo broken 503"]);
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: "ada@example.com",
    });
    const { page } = person;
    await person.go("/o/acme");
    const row = page.locator(".concern", {
      hasText: "Webhook broken is failing",
    });
    await row.getByText("503 come back later").waitFor();
    await row.click();
    await page.getByRole("heading", { name: "broken", exact: true }).waitFor();
    // Why it fails, and the row of the delivery with its last response and its next attempt.
    const why = page.getByRole("region", { name: "Why it fails" });
    await why.getByText("503 come back later").waitFor();
    await why.getByText(/^\d+ failures? in a row, last/).waitFor();
    const delivery = page.getByRole("row", { name: /a test/ });
    await delivery.getByText("retrying", { exact: true }).waitFor();
    await delivery.getByText(/^attempt \d (in|now)/).waitFor();
    await delivery.getByText("503 come back later").waitFor();
    await person.isSoundInAllWindows("webhook-failing");
    await person.go("/o/acme/deployments/echo/webhooks");
    const listed = page.getByRole("row", { name: /^broken/ });
    await listed.getByText("failing", { exact: true }).waitFor();
    await listed.getByText("503 come back later").waitFor();
    await webhooks.deleteWebhook({ deployment: "echo", name: "broken" });
    await person.go("/o/acme");
    await page.getByText(/^All runs well/).waitFor();
  });

  it("tell of alerts where they are receivers, and a rule keeps its part of a minute", async () => {
    await using told = await Receiver.start();
    const { alerts } = world.client;
    const hold = { seconds: 90n, nanos: 0 };
    await alerts.createAlertRule({
      rule: { name: "slow", kind: AlertKind.OLDEST_TASK_WAITS, threshold: 300, hold },
    });
    await using person = await ConsoleBrowser.open(browser, world.platform, {
      email: "ada@example.com",
    });
    const { page } = person;
    await person.go("/o/acme/alerts");
    await page.getByRole("button", { name: "Create receiver" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("app");
    await dialog.getByLabel("Address").fill(told.url);
    await dialog.getByRole("button", { name: "Create" }).click();
    const secret = (await dialog.getByText(/^whsec_/).textContent()) ?? "";
    await page.keyboard.press("Escape");
    const act = async (name: string, item: string) => {
      await page.getByRole("button", { name: `Actions for ${name}` }).click();
      await page.getByRole("menuitem", { name: item }).click();
    };
    await act("app", "Send test");
    const [{ body, headers }] = (await told.has(1)) as [Received];
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toBeTruthy();
    const test = page.getByRole("row", { name: /a test/ });
    await test.getByText("delivered", { exact: true }).waitFor();
    await test.getByRole("button", { name: /^Send again/ }).click();
    await told.has(2);
    expect(new Set(told.ids).size).toBe(1);
    await act("app", "Rotate secret");
    await dialog.getByRole("button", { name: "Rotate" }).click();
    expect(await dialog.getByText(/^whsec_/).textContent()).not.toBe(secret);
    await page.keyboard.press("Escape");
    await act("slow", "Edit");
    await dialog.getByLabel("Threshold, in seconds").fill("600");
    await dialog.getByLabel("app").check();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("waits for more than 600 s").waitFor();
    const { rules } = await alerts.listAlertRules({});
    expect(rules).toMatchObject([{ threshold: 600, hold, receivers: ["app"] }]);
    await person.isSound({});
  });

  it("of alerts, and their rules, are changed by two people at once, who are both told", async () => {
    const { alerts } = world.client;
    const [a, b] = [`${receiver.url}/a`, `${receiver.url}/b`];
    const kind = AlertReceiverKind.WEBHOOK;
    await alerts.createAlertReceiver({ receiver: { name: "moved", kind, address: receiver.url } });
    await alerts.createAlertRule({ rule: { name: "both", kind: AlertKind.FAILURES } });
    const person = () => ConsoleBrowser.open(browser, world.platform, { email: "ada@example.com" });
    const edit = async (at: ConsoleBrowser, name: string) => {
      await at.press(`Actions for ${name}`);
      await at.page.getByRole("menuitem", { name: "Edit" }).click();
      return at.page.getByRole("dialog");
    };
    await using one = await person();
    await using other = await person();
    await one.go("/o/acme/alerts");
    await other.go("/o/acme/alerts");

    const mine = await edit(one, "moved");
    const theirs = await edit(other, "moved");
    await mine.getByLabel("Address").fill(a);
    await theirs.getByLabel("Address").fill(b);
    await other.press("Save");
    await other.page
      .getByRole("row", { name: /^moved/ })
      .getByText(b)
      .waitFor();
    await one.press("Save");
    await mine.getByText(`It is now: ${b}, enabled. Save again`).waitFor();
    await one.isSoundInAllWindows("receiver-edit", { answers: [409] });
    await one.press("Save");
    await other.page
      .getByRole("row", { name: /^moved/ })
      .getByText(a)
      .waitFor();

    const rule = await edit(one, "both");
    const same = await edit(other, "both");
    await rule.getByLabel("Threshold, in percent").fill("7");
    await same.getByLabel("moved").check();
    await other.press("Save");
    await other.page.getByRole("row", { name: /^both/ }).getByText("moved").waitFor();
    await one.press("Save");
    await rule.getByText("It is now: more than 5 % of the tasks").waitFor();
    await rule.getByText("notifies moved, hold time 120s").waitFor();
    await one.press("Save");
    await other.page.getByText("more than 7 % of the tasks").waitFor();
    await alerts.deleteAlertRule({ name: "both" });
    await alerts.deleteAlertReceiver({ name: "moved" });
  });
});
