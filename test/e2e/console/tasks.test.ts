/** Tasks in the console: followed live, with every attempt, and in long lists. */
import { stat } from "node:fs/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { artifact, until, World } from "../hosting/world.ts";
import { chromiumMissing, closeContexts, sharedChromium } from "./chromium.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const skipped = leftOut(chromiumMissing);
const EMAIL = "ada@example.com";
const TASKS = "/o/acme/deployments/tape/tasks";

/** Tasks of the long list, and how many one call submits. */
const MANY = 10_000;
const BATCH = 1_000;

/** A red square of one pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** The longest frame that nobody notices while they scroll. */
const MAX_FRAME_MS = 100;

/** The longest time that a page may be deaf while it loads, with others on the processor. */
const MAX_TASK_MS = 1_000;

/** Notes the longest time that the page was deaf. */
const NOTE_LONG_TASKS = `globalThis.longestTaskMs = 0;
  new PerformanceObserver((list) => {
    longestTaskMs = Math.max(longestTaskMs, ...list.getEntries().map(({ duration }) => duration));
  }).observe({ type: "longtask", buffered: true });`;

/** Scrolls so far and back; the longest time between two frames, in milliseconds. */
const longestFrame = (height: string): string => `new Promise((resolve) => {
  const height = ${height};
  const steps = 120;
  let step = 0;
  let longest = 0;
  let lastMs = performance.now();
  const next = (nowMs) => {
    longest = Math.max(longest, nowMs - lastMs);
    lastMs = nowMs;
    step += 1;
    scrollTo(0, height * (step <= steps / 2 ? step : steps - step) / (steps / 2));
    step < steps ? requestAnimationFrame(next) : resolve(longest);
  };
  requestAnimationFrame((nowMs) => { lastMs = nowMs; requestAnimationFrame(next); });
})`;

/** How far the list is scrolled to see its frames, in pixels. */
const A_THOUSAND_ROWS = "41_000";

/** Scrolls until the end of the list is told; how long that takes, in milliseconds. */
const TO_THE_END = `new Promise((resolve) => {
  const beganMs = performance.now();
  const next = () => {
    scrollTo(0, document.documentElement.scrollHeight);
    document.body.textContent.includes("All ${MANY} tasks are shown")
      ? resolve(performance.now() - beganMs)
      : requestAnimationFrame(next);
  };
  next();
})`;

describe.skipIf(skipped)(`tasks in the console${skipped}`, () => {
  let browser: Browser;
  let world: World;

  const submit = async (endpoint: string, body: object = {}): Promise<string> => {
    const { status, text, json } = await world.call("tape", `/${endpoint}/submit`, { body });
    expect(status, text).toBe(202);
    return json.task_id;
  };
  const ended = (endpoint: string, id: string) =>
    world.call("tape", `/${endpoint}/get?task_id=${id}&wait=30`);
  /** Lets the attempt go that waits, once it does. */
  const letGo = () =>
    until(
      () => world.call("tape", "/letGo", { body: {} }),
      ({ json }) => json > 0,
    );

  beforeAll(async () => {
    browser = await sharedChromium();
    world = await World.start();
    await world.deployed("tape", await artifact("tape"), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
  });
  afterAll(async () => {
    await closeContexts();
    await world?.[Symbol.asyncDispose]();
  });

  it("shows three attempts with both errors, live and afterwards, and runs it again", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const id = await submit("record");
    await person.go(`${TASKS}/${id}`);
    await person.heading("Task of record");
    await page.getByText("25 % recording").waitFor();
    await page.getByText('the tape runs {"attempt":1}').waitFor();
    await letGo();
    await page.getByText("the tape tore at meter 1").first().waitFor();
    await page.getByRole("heading", { name: "Attempt 2" }).waitFor();
    await page.getByText("50 % recording").waitFor();
    await letGo();
    await page.getByText("the tape tore at meter 2").first().waitFor();
    await page.getByText("75 % recording").waitFor();
    await person.isSound();
    await person.picture("task-running");
    await letGo();
    await page.getByText("the tape held").waitFor();
    await page.getByText("complete", { exact: true }).waitFor();
    const told = [
      "the tape tore at meter 1",
      "the tape tore at meter 2",
      'the tape runs {"attempt":3}',
    ];
    for (const text of told) {
      expect(await page.getByText(text).count(), text).toBe(1);
    }
    await person.isSound();
    await page.reload();
    for (const text of told) {
      await page.getByText(text).waitFor();
    }
    const timing = page.getByRole("region", { name: "Timing" });
    await timing.getByText(/^Queued .+ · ran .+ in 3 attempts · backoff .+$/).waitFor();
    const attempts = page.getByRole("button", { name: /^Attempt \d/ });
    expect(await attempts.count()).toBe(3);
    await attempts.first().press("Enter");
    const first = page.getByRole("region", { name: "Attempt 1" });
    await first.getByText("the tape tore at meter 1").waitFor();
    await first.getByText('the tape runs {"attempt":1}').waitFor();
    // The place in the author's code, and the stack from it on.
    const place = first.getByRole("region", { name: "Stack" }).locator("pre.innermost");
    await place.getByText(/\.[jt]s:\d+:\d+/).waitFor();
    await person.isSound();
    await person.picture("task-ended");
    await person.press("Retry");
    const earlier = page.getByRole("link", { name: id.slice(-12) });
    await page.getByText(`retry of ${id.slice(-12)}`).waitFor();
    await page.getByText("25 % recording").waitFor();
    await person.press("Cancel task");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
    await page.getByText("The task is cancelled").waitFor();
    await page.getByText("cancelled", { exact: true }).first().waitFor();
    const retry = new URL(page.url()).pathname.slice(-12);
    await earlier.click();
    await page.getByText(`retried as ${retry}`).waitFor();
    await person.isSound();
  });

  it("shows the pieces of a streamed result as they come, anew with each attempt, and the whole", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const id = await submit("dictate");
    await person.go(`${TASKS}/${id}`);
    const pieces = page.getByRole("region", { name: "Pieces" });
    await pieces.getByText("take 1, ", { exact: true }).waitFor();
    await letGo();
    await pieces.getByText("take 2, ", { exact: true }).waitFor();
    await page.getByText("1 piece of attempt 2, which began anew").waitFor();
    await person.isSound();
    await page.reload();
    await pieces.getByText("take 2, ", { exact: true }).waitFor();
    await letGo();
    const whole = page.getByRole("region", { name: "Content of Result" });
    await whole.getByText("take 2, the end", { exact: true }).waitFor();
    expect(await pieces.count()).toBe(0);
    await person.isSound();
  });

  it("shows pictures, long texts in part, and the markup of others as text", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const still = await submit("still");
    await person.go(`${TASKS}/${still}`);
    await page.getByRole("img", { name: /^Result/ }).waitFor();
    await person.isSound();
    const length = 250_000;
    const label = await submit("label", { length });
    expect((await ended("label", label)).status).toBe(200);
    await person.go(`${TASKS}/${label}`);
    await page.getByText(/more than 4\.0 MiB; the page shows the beginning/).waitFor();
    const hiss = await submit("hiss");
    await ended("hiss", hiss);
    await person.go(`${TASKS}/${hiss}`);
    const attempt = page.getByRole("region", { name: "Attempt 1" });
    await attempt.getByText("the function failed").waitFor();
    await attempt
      .locator(".attempt-failure")
      .getByText(/^<script>/)
      .waitFor();
    expect(await page.title()).toContain("Task of hiss");
    await person.isSound();
  });

  it("show what they were called with, and a command that calls them so again", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const label = await submit("label", { length: 3 });
    await person.go(`${TASKS}/${label}`);
    await page.getByRole("heading", { name: "Arguments" }).waitFor();
    await page.getByRole("treeitem", { name: "length: 3" }).waitFor();
    await page.locator(".page-description").getByText("length: 3", { exact: true }).waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await person.press("Copy as curl: this call");
    const copied = () => page.evaluate<string>("navigator.clipboard.readText()");
    expect(await copied()).toContain(`/label/submit' -H 'tessera-deployment: acme/tape'`);
    await page.getByRole("button", { name: /Copy the id$/ }).click();
    expect(await copied()).toBe(label);
    await person.isSound();
    await page.keyboard.press("r");
    const raw = page.getByRole("dialog", { name: "The task as JSON" });
    await raw.getByText(`"task_id": "${label}"`).waitFor();
    await person.isSound();
    await page.keyboard.press("Escape");
    await raw.waitFor({ state: "detached" });
    const cover = `data:image/png;base64,${PIXEL}`;
    const { status, json } = await world.platform.call(
      "/api/v1/tasks",
      { deployment: "acme/tape", endpoint: "mark", arguments: { cover, text: "it's red" } },
      world.cookie,
    );
    expect(status).toBe(200);
    const { task_id } = json.task as { task_id: string };
    await person.go(`${TASKS}/${task_id}`);
    await page.getByRole("treeitem", { name: `text: "it's red"` }).waitFor();
    expect(await page.getByRole("button", { name: /curl/ }).count()).toBe(0);
    await person.press("Show");
    await page.getByRole("img", { name: /^cover/ }).waitFor();
    await person.isSound();
    await person.picture("task-arguments");
  });

  it("are read once where they have ended", async () => {
    const label = await submit("label", { length: 3 });
    await ended("label", label);
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    let reads = 0;
    page.on("request", (request) => {
      reads += request.url().endsWith("TaskService/GetTask") ? 1 : 0;
    });
    await person.go(`${TASKS}/${label}`);
    await page.getByText("complete", { exact: true }).waitFor();
    // What came by the stream is shown with the next frame.
    await page.evaluate(
      "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
    );
    expect(reads).toBe(1);
  });

  it("fold what they returned, by keyboard, and show lists of objects as tables", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const rows = await submit("rows", { count: 250 });
    expect((await ended("rows", rows)).status).toBe(200);
    await person.go(`${TASKS}/${rows}`);
    const tree = page.getByRole("tree", { name: "Content of Result" });
    const focused = tree.locator(":focus");
    await tree.getByRole("treeitem", { name: "total: 250" }).focus();
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "End"]) {
      await page.keyboard.press(key);
    }
    await tree.getByRole("treeitem", { name: /^0: / }).waitFor();
    expect(await focused.textContent()).toBe("Show 100 more of 150");
    await page.keyboard.press("Enter");
    expect(await focused.textContent()).toContain("100: ");
    await person.isSound();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    expect(await focused.textContent()).toBe("rows: 250 items");
    expect(await tree.getByRole("treeitem").count()).toBe(2);
    await page
      .getByRole("group", { name: "Show Result as" })
      .getByRole("button", { name: "Table" })
      .press("Enter");
    await page.getByRole("columnheader", { name: "имя" }).waitFor();
    expect(await page.getByRole("cell", { name: "名前" }).count()).toBe(100);
    await person.press("Show 100 more");
    await page.getByText("200 of 250 rows").waitFor();
    await person.isSound();
    await person.picture("task-table");
    // On a phone as well, the tools are on the line of the heading.
    await page.setViewportSize({ width: 390, height: 844 });
    const heading = await page.getByRole("heading", { name: "Result" }).boundingBox();
    const tools = await page.getByRole("group", { name: "Show Result as" }).boundingBox();
    expect(tools?.y).toBeLessThan((heading?.y ?? 0) + (heading?.height ?? 0));
    await person.picture("task-table-390");
  });

  it("show the beginning of a result of 60 MB without standing still, and save it whole", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const rows = await submit("rows", { count: 750_000 });
    const { text } = await ended("rows", rows);
    expect(text.length).toBeGreaterThan(55_000_000);
    await page.addInitScript(NOTE_LONG_TASKS);
    await person.go(`${TASKS}/${rows}`);
    await page.getByText("more than 4.0 MiB; the page shows the beginning").waitFor();
    expect(await page.evaluate("longestTaskMs")).toBeLessThan(MAX_TASK_MS);
    await person.isSound();
    const [download] = await Promise.all([
      page.waitForEvent("download", { timeout: 30_000 }),
      person.press("Download Result"),
    ]);
    expect(download.suggestedFilename()).toBe(`${rows}.json`);
    expect((await stat(await download.path())).size).toBe(Buffer.byteLength(text));
  });

  it("with sixty attempts, a stack of 500 frames and a line of 1 MB are shown in part", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const sunk = await submit("sink");
    await ended("sink", sunk);
    await person.go(`${TASKS}/${sunk}`);
    await page.getByText(/^4[01] attempts not kept$/).waitFor();
    const last = page.getByRole("region", { name: "Attempt 61" });
    await last.getByText("the tape is at the bottom").waitFor();
    const stack = last.getByRole("region", { name: "Stack" });
    await stack.getByText(/^\d+ more frames$/).waitFor();
    expect(await stack.locator("pre:visible").count()).toBeLessThan(20);
    await last.getByRole("button", { name: /^… show all [\d,]+ characters$/ }).waitFor();
    await page.keyboard.press("k");
    await page.getByRole("region", { name: "Attempt 60" }).getByText("attempt 60 sank").waitFor();
    await page.keyboard.press("j");
    await last.waitFor();
    await person.isSoundInAllWindows("task-of-many-attempts");
  });

  it("are found over all deployments by their state and by one text, and kept as a view", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const hiss = await submit("hiss");
    await ended("hiss", hiss);
    await person.go("/o/acme");
    await person.heading("acme");
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await person.heading("Tasks");
    await page.getByRole("link", { name: hiss.slice(-12) }).waitFor();
    await person.isSound();
    await page.getByLabel("Deployment").selectOption("tape");
    await page.keyboard.press("/");
    await page.getByRole("searchbox", { name: "Search" }).fill("no task has this");
    await page.keyboard.press("Enter");
    await page.getByText("No tasks match").waitFor();
    for (const text of ["document.TITLE", hiss, hiss.slice(-12), "HISS"]) {
      await page.getByRole("searchbox", { name: "Search" }).fill(text);
      await page.keyboard.press("Enter");
      await page.getByRole("link", { name: hiss.slice(-12) }).waitFor();
    }
    expect(new URL(page.url()).search).toBe("?deployment=tape&text=HISS");
    await page.getByLabel("Time range").selectOption("Last hour");
    await page.getByRole("link", { name: /^failure/ }).click();
    await page.getByRole("link", { name: hiss.slice(-12) }).waitFor();
    await page.getByRole("link", { name: /^failure ?[1-9]\d*$/ }).waitFor();
    await person.isSound();
    await person.picture("tasks-of-all");
    await person.press("Save view…");
    await page.getByLabel("Name").fill("Rauschen 雑音");
    await page.keyboard.press("Enter");
    await person.go("/o/acme/tasks");
    await page.getByRole("link", { name: "Rauschen 雑音" }).click();
    await page.getByRole("link", { name: hiss.slice(-12) }).waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      ...{ deployment: "tape", text: "HISS", since: "1h", status: "failure" },
    });
    await person.press("Delete view");
    await page.getByRole("button", { name: "Save view…" }).waitFor();
    // Enter opens the row.
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await person.heading("Task of hiss");
    // The palette finds tasks by their ids, and runs them again.
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: /^Search/ }).fill(hiss.slice(-12));
    await page.getByRole("option", { name: `Retry ${hiss}` }).waitFor();
    await page.getByRole("option", { name: `hiss ${hiss}` }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: hiss.slice(-12) }).waitFor();
  });

  it("are started before their time and deleted, by keyboard", async () => {
    const client = await world.callerClient();
    const { task } = await client.tasks.submitTask({
      ...{ deployment: "acme/tape", endpoint: "quick", delay: { seconds: 3_600n, nanos: 0 } },
      input: { case: "arguments", value: { take: 1 } },
      tags: ["mono", "side:b"],
    });
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const row = page.getByRole("link", { name: task?.taskId.slice(-12) ?? "" });
    await person.go(`/o/acme/deployments/tape/tasks/${task?.taskId}`);
    await page.getByRole("link", { name: "side:b" }).press("Enter");
    await row.waitFor();
    expect(new URL(page.url()).searchParams.get("tags")).toBe("side:b");
    await page.getByLabel("Tags").fill("side:b, stereo");
    await page.getByLabel("Tags").press("Enter");
    await page.getByText("No tasks match").waitFor();
    await page.getByLabel("Tags").fill("side:b, mono");
    await page.getByLabel("Tags").press("Enter");
    await row.press("Enter");
    const choose = async (item: string) => {
      await page.getByRole("button", { name: "More actions for this task" }).press("Enter");
      await page.getByRole("menuitem", { name: item }).press("Enter");
    };
    await choose("Change its start or tags…");
    await page.getByLabel("Priority").fill("7");
    await page.getByLabel("Not before").fill("");
    await page.getByLabel("Tags").fill("stereo");
    await person.isSound();
    await page.getByLabel("Priority").press("Enter");
    await page.getByText("success", { exact: true }).first().waitFor();
    await page.getByRole("link", { name: "stereo" }).waitFor();
    await choose("Delete task");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Delete task" }).press("Enter");
    await page.getByText("The task is deleted").waitFor();
    await person.go(`/o/acme/deployments/tape/tasks/${task?.taskId}`);
    await page.getByText("was deleted on").waitFor();
  });

  it("tell what is scheduled from what waits, and when it starts", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    const { status, json } = await world.platform.call(
      "/api/v1/tasks",
      {
        ...{ deployment: "acme/tape", endpoint: "label", delay: "7200s" },
        arguments: { length: 7 },
      },
      world.cookie,
    );
    expect(status).toBe(200);
    await person.go("/o/acme/tasks?status=scheduled");
    await page.getByRole("row", { name: /starts in 2 h ?length: 7/ }).waitFor();
    await page.getByRole("link", { name: /^scheduled ?1$/ }).waitFor();
    const time = page.getByRole("row").last().locator("time").last();
    expect(await time.getAttribute("title")).toMatch(/(UTC|GMT)/);
    await person.isSound();
    await page.getByRole("link", { name: /^queued/ }).click();
    await page.getByText("No tasks match").waitFor();
    const { task_id } = json.task as { task_id: string };
    const cancel = `/api/v1/tasks/${task_id}:cancel`;
    const cancelled = await world.platform.call(cancel, { deployment: "acme/tape" }, world.cookie);
    expect(cancelled.status).toBe(200);
  });

  it("are counted in the overview and the list of deployments, with what needs attention", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    await ended("hiss", await submit("hiss"));
    const running = await submit("record");
    await person.go("/o/acme");
    await person.heading("acme");
    await page.getByText("1 worker · 0 queued, 1 running").waitFor();
    const failed = page.getByRole("link", { name: /^\d+ tasks? failed in the last hour$/ });
    // Nodes store what they have counted every ten seconds.
    await failed.waitFor({ timeout: 30_000 });
    // One state on all pages, of which one of twenty failures is enough.
    await page.locator(".row-state").getByText("failing", { exact: true }).waitFor();
    await page.getByText(/ · 0 of 1 deployment ready, 1 failing$/).waitFor();
    const numbers = page.locator(".numbers > div");
    for (const [name, text] of [
      ["Finished tasks", /^Finished tasks[1-9]/],
      ["Failed tasks", /^Failed tasks[1-9]\d*[\d.]+ %$/],
      ["Run time", / p95p50.+p99./],
    ] as const) {
      await numbers.filter({ hasText: name }).filter({ hasText: text }).waitFor();
    }
    await person.isSound();
    await person.picture("overview-tasks");
    // Its cause is on the row, which is a link as a whole.
    const row = page.locator(".concern").filter({ has: failed });
    await row.getByText(/^hiss: ./).waitFor();
    await row.click();
    await person.heading("tape: tasks");
    await page.locator(".page-description").getByText("failing", { exact: true }).waitFor();
    const { searchParams } = new URL(page.url());
    expect(Object.fromEntries(searchParams)).toEqual({ status: "failure", since: "1h" });
    await page.getByRole("link", { name: "Overview", exact: true }).last().click();
    await page.getByText(/\d+ of \d+ tasks? failed in the last hour$/).waitFor();
    const causes = page.getByRole("region", { name: "Why tasks failed" });
    const cause = causes.getByRole("listitem").filter({ hasText: /tasks? of hiss, last/ });
    const endpoints = page.locator(".endpoint-rows > li").filter({ hasText: "/hiss/submit" });
    await endpoints.getByText(/^[1-9]\d* tasks?100 % failedp95 /).waitFor();
    await person.isSound();
    await person.picture("failing-deployment");
    await cause.getByRole("listitem").first().getByRole("link").click();
    await person.heading("Task of hiss");
    await person.go("/o/acme/deployments");
    await page.getByText("0 of 1 deployment ready, 1 failing", { exact: true }).waitFor();
    const cells = page.getByRole("row", { name: /^tape/ }).getByRole("cell");
    await expect
      .poll(async () => (await cells.allTextContents()).slice(0, 6), { timeout: 30_000 })
      .toEqual([
        expect.stringMatching(/^failing/),
        expect.stringMatching(/^[1-9]\d* of [1-9]\d* tasks of tape failed$/),
        expect.stringMatching(/%/),
        expect.stringMatching(/^[1-9]/),
        "0",
        "1",
      ]);
    await person.isSound();
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await letGo();
    }
    expect((await ended("record", running)).status).toBe(200);
  });

  it("lists ten thousand without a pause, by the filter that the address has", async () => {
    await using person = await ConsoleBrowser.open(browser, world.platform, { email: EMAIL });
    const { page } = person;
    for (let sent = 0; sent < MANY; sent += BATCH) {
      const tasks = Array.from({ length: BATCH }, (_, index) => ({
        endpoint: "quick",
        arguments: { take: sent + index },
      }));
      const { status, json } = await world.platform.call(
        "/api/v1/tasks:batchSubmit",
        { deployment: "acme/tape", tasks },
        world.cookie,
      );
      expect([status, json.accepted]).toEqual([200, BATCH]);
    }
    // Others use the processor too; what a list or a page takes itself, it takes each time.
    await expect
      .poll(async () => {
        const beganMs = performance.now();
        const listed = await world.platform.call(
          "/api/v1/tasks?deployment=acme/tape&page_size=100",
          undefined,
          world.cookie,
        );
        expect(listed.json.tasks).toHaveLength(100);
        return performance.now() - beganMs;
      })
      .toBeLessThan(200);
    await person.go(`${TASKS}?endpoint=quick`);
    await person.heading("tape: tasks");
    await page.getByRole("table").waitFor();
    await person.isSound();
    const scrolledMs = Number(await page.evaluate(TO_THE_END));
    console.info(`10,000 tasks scrolled to the end in ${Math.round(scrolledMs)} ms`);
    expect(scrolledMs).toBeLessThan(30_000);
    await page.locator(`table[aria-rowcount="${MANY + 1}"]`).waitFor();
    expect(await page.getByRole("row").count()).toBeLessThan(100);
    // Others hold up a page that stands still as well.
    const longest = async (height: string) => Number(await page.evaluate(longestFrame(height)));
    await expect
      .poll(async () => (await longest(A_THOUSAND_ROWS)) - (await longest("0")), {
        timeout: 90_000,
      })
      .toBeLessThan(MAX_FRAME_MS);
    await page.getByRole("link", { name: /^failure/ }).click();
    await page.getByText("No tasks match").waitFor();
    expect(new URL(page.url()).search).toBe("?status=failure&endpoint=quick");
    await page.getByLabel("Endpoint").selectOption("hiss");
    await page.getByRole("rowheader").first().waitFor();
    await person.isSound();
    await person.picture("tasks");
    await page.getByRole("rowheader").first().getByRole("link").click();
    await person.heading("Task of hiss");
    await page.reload();
    await page.getByRole("link", { name: "Tasks: failure, hiss" }).click();
    await page.getByRole("rowheader").first().waitFor();
    expect(new URL(page.url()).search).toBe("?status=failure&endpoint=hiss");
  }, 240_000);
});
