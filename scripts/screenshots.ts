/**
 * `npm run screenshots`: runs the platform with both examples, calls them, and takes a picture of
 * each page of the console in light and dark, narrow, wide and very wide. A contact sheet has them all. With
 * `--docs` it takes those of the documentation alone, which needs ffmpeg.
 */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { launchChromium } from "../test/e2e/console/chromium.ts";
import { ExamplePlatform } from "./example-platform.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "./usage.ts";

const USAGE = `Usage: npm run screenshots -- [options]

Runs the platform with both examples, calls them for a while, and takes a picture of each
page of the console: light and dark, narrow, wide and very wide.

Options:
  --out <folder>     where they go (default: ./screenshots)
  --minutes <count>  how long the examples are called, so that charts have something to show
                     (default: 0.6)
  --only <pages>     those pages alone, by their names, with commas between, such as task,log
  --docs             takes the pictures of the documentation, into docs/pictures
  --help             shows this help
`;

const SIZES = {
  narrow: { width: 390, height: 844 },
  wide: { width: 1280, height: 800 },
  huge: { width: 2560, height: 1440 },
} as const;
/** Longer than two samples of the metrics. */
const DEFAULT_CALLS_MINUTES = 0.6;
const CALL_INTERVAL_MS = 150;
/** For all pictures of the contact sheet. */
const LOAD_TIMEOUT_MS = 120_000;
/** Pictures of the contact sheet beside each other. */
const MAX_COLUMNS = 6;

/** Tasks whose pages are shown. */
interface Shown {
  readonly succeeded: string;
  /** One that failed in each of its attempts. */
  readonly failed: string;
}

/** Calls the examples as people would. */
async function callExamples(platform: ExamplePlatform, minutes: number): Promise<Shown> {
  const failed = await submitForecast(platform);
  await furnish(platform);
  let taskId = "";
  const untilMs = performance.now() + minutes * 60_000;
  for (let round = 0; performance.now() < untilMs; round += 1) {
    // A few calls fail: fewer than make a deployment failing.
    const sentences = round % 30 === 15 ? 0 : 2;
    await platform.summarizer("/summarize", { text: platform.text(round), sentences });
    if (round % 5 === 0) {
      taskId = await platform.submitBatch(200);
    }
    await platform.classify(round);
    await sleep(CALL_INTERVAL_MS);
  }
  const got = await platform.summarizer(`/summarize_batch/get?task_id=${taskId}&wait=30`);
  await got.bytes();
  return { succeeded: taskId, failed };
}

/** As many as an alert fires for. */
const FAILED_TASKS = 4;

/** Deploys the forecast, and asks it for a city without a station; answers the id of a task. */
async function submitForecast(platform: ExamplePlatform): Promise<string> {
  const service = fileURLToPath(new URL("tour/forecast.ts", import.meta.url));
  await promisify(execFile)(
    process.execPath,
    ["bin/tessera.js", "deploy", service, "--name", "forecast"],
    { env: { ...process.env, ...platform.developerVariables() } },
  );
  let taskId = "";
  for (let task = 0; task < FAILED_TASKS; task += 1) {
    const submitted = await fetch(`${platform.url}/predict/submit`, {
      method: "POST",
      headers: { "tessera-deployment": "acme/forecast", "content-type": "application/json" },
      body: JSON.stringify({ city: "Atlantis" }),
    });
    ({ task_id: taskId } = (await submitted.json()) as { task_id: string });
  }
  return taskId;
}

/** Gives the forecast schedules and webhooks, and the organization rules of alerts. */
async function furnish(platform: ExamplePlatform): Promise<void> {
  const make = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await platform.asked(`/api/v1/${path}`, {
      ...{ method: "POST", headers, body: JSON.stringify(body) },
    });
    if (!answer.ok) {
      throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    }
  };
  const call = { endpoint: "predict", arguments: { city: "Lisbon" } };
  for (const [name, cron, time_zone] of [
    ["often", "*/10 * * * *", "UTC"],
    ["workdays", "0 8 * * MON-FRI", "Europe/Amsterdam"],
    ["month-end", "30 23 L * *", "America/New_York"],
  ] as const) {
    await make("deployments/forecast/schedules", { schedule: { ...call, name, cron, time_zone } });
  }
  for (const [name, events] of [
    ["ledger", []],
    ["pager", ["task_failure"]],
  ] as const) {
    const webhook = { name, url: `https://example.com/${name}`, events };
    await make("deployments/forecast/webhooks", { webhook });
  }
  const receiver = { name: "on-call", kind: "webhook", address: "https://example.com/alerts" };
  await make("alertReceivers", { receiver });
  for (const [name, kind, threshold] of [
    ["degraded", "deployment_degraded", 0],
    ["webhooks", "webhook_off", 0],
    // It fires while the pictures are taken.
    ["failing", "failures", 5],
  ] as const) {
    const rule = { name, kind, threshold, receivers: [receiver.name], hold: "60s" };
    await make("alertRules", { rule });
  }
}

/** The pages with the names of their pictures. */
const pages = ({
  succeeded,
  failed,
}: Shown): readonly (readonly [name: string, path: string])[] => [
  ["overview", "/o/acme"],
  ["deployments", "/o/acme/deployments"],
  ["deployment", "/o/acme/deployments/summarizer"],
  ["failing-deployment", "/o/acme/deployments/forecast"],
  ["deployment-tasks", "/o/acme/deployments/summarizer/tasks"],
  ["task", `/o/acme/deployments/summarizer/tasks/${succeeded}`],
  ["failed-task", `/o/acme/deployments/forecast/tasks/${failed}`],
  ["playground", "/o/acme/deployments/summarizer/playground"],
  ["revisions", "/o/acme/deployments/summarizer/revisions"],
  ["metrics", "/o/acme/deployments/summarizer/metrics"],
  ["own-metrics", "/o/acme/deployments/digits/metrics?show=service"],
  ["log", "/o/acme/deployments/forecast/log"],
  ["settings", "/o/acme/deployments/digits/settings"],
  ["schedules", "/o/acme/deployments/forecast/schedules"],
  ["webhooks", "/o/acme/deployments/forecast/webhooks"],
  ["webhook", "/o/acme/deployments/forecast/webhooks/pager"],
  ["tasks", "/o/acme/tasks"],
  ["models", "/o/acme/models"],
  ["machines", "/o/acme/machines"],
  ["alerts", "/o/acme/alerts"],
  ["usage", "/o/acme/usage"],
  ["tokens", "/o/acme/tokens"],
  ["members", "/o/acme/members"],
  ["audit", "/o/acme/audit"],
  ["operator", "/o/acme/operator"],
  ["account", "/account"],
  ["device", "/device"],
  ["api-reference", "/reference"],
  ["sign-in", "/sign-in"],
];

/** The names of the pages to take; undefined for all. */
type Wanted = ReadonlySet<string> | undefined;

function namesIn(only: string | undefined): Wanted {
  const known = pages({ succeeded: "", failed: "" }).map(([name]) => name);
  const names = only?.split(",");
  const unknown = names?.filter((name) => !known.includes(name)) ?? [];
  if (unknown.length > 0) {
    throw new UsageError(`--only ${only}: no page is named ${unknown[0]}: ${known.join(", ")}`);
  }
  return names && new Set(names);
}

/** Those that the documentation shows, in light and wide, with their heights. */
const IN_DOCS: ReadonlyMap<string, number> = new Map([
  ["overview", 800],
  ["task", 800],
  ["playground", 800],
  ["metrics", 800],
  ["tokens", 420],
]);
const DOCS_FOLDER = "docs/pictures";

/** Takes the pictures of the documentation, as WebP. */
async function photographForDocs(
  browser: Browser,
  platform: ExamplePlatform,
  { folder, minutes }: { readonly folder: string; readonly minutes: number },
): Promise<number> {
  const shown = await callExamples(platform, minutes);
  const page = await browser.newPage({ viewport: SIZES.wide, reducedMotion: "reduce" });
  await platform.signIn(page);
  for (const [name, path] of pages(shown)) {
    const height = IN_DOCS.get(name);
    if (height === undefined) {
      continue;
    }
    const file = join(folder, `${name}.png`);
    await page.setViewportSize({ ...SIZES.wide, height });
    await open(page, platform.url + path);
    await page.screenshot({ path: file });
    const made = join(DOCS_FOLDER, `${name}.webp`);
    execFileSync("ffmpeg", ["-v", "error", "-y", "-i", file, "-quality", "80", made]);
  }
  return IN_DOCS.size;
}

async function open(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  const loading = page.locator("#root :is(.loading, .skeleton-page, .log-skeleton)");
  await loading.first().waitFor({ state: "detached" });
  // Streams never end, so there is no moment when nothing is loaded any more.
  await sleep(700);
}

async function photograph(
  browser: Browser,
  platform: ExamplePlatform,
  { out, minutes, only }: { readonly out: string; readonly minutes: number; readonly only: Wanted },
): Promise<string[]> {
  const shown = await callExamples(platform, minutes);
  const wanted = pages(shown).filter(([name]) => only?.has(name) ?? true);
  const files: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const context = await browser.newContext({ colorScheme, viewport, reducedMotion: "reduce" });
      const page = await context.newPage();
      await platform.signIn(page);
      for (const [name, path] of wanted) {
        await open(page, platform.url + path);
        const file = `${name}-${colorScheme}-${size}.png`;
        await page.screenshot({ path: join(out, file) });
        files.push(file);
      }
      await context.close();
    }
  }
  return files;
}

/** All pictures on one. */
async function contactSheet(browser: Browser, files: readonly string[], out: string) {
  const page = await browser.newPage({ viewport: { width: 1_600, height: 1_000 } });
  const figures = files.map((file) => {
    const source = `data:image/png;base64,${readFileSync(join(out, file), "base64")}`;
    return `<figure><img src="${source}"><figcaption>${file}</figcaption></figure>`;
  });
  const style = `body { display: grid; grid-template-columns: repeat(${MAX_COLUMNS}, 1fr); gap: 12px; font: 12px sans-serif }
    figure { margin: 0 } img { width: 100%; border: 1px solid #ccc }`;
  await page.setContent(`<style>${style}</style>${figures.join("")}`, {
    waitUntil: "load",
    timeout: LOAD_TIMEOUT_MS,
  });
  await page.screenshot({ path: join(out, "contact-sheet.png"), fullPage: true });
}

async function main(): Promise<number> {
  const { values } = readArguments({
    options: {
      out: { type: "string", default: "./screenshots" },
      minutes: { type: "string", default: String(DEFAULT_CALLS_MINUTES) },
      only: { type: "string" },
      docs: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 600)) {
    throw new UsageError(`--minutes ${values.minutes}: write a number from 0.1 to 600`);
  }
  const only = namesIn(values.only);
  await using stack = new AsyncDisposableStack();
  const data = mkdtempSync(join(tmpdir(), "tessera-screenshots-"));
  stack.defer(() => rmSync(data, { recursive: true, force: true }));
  const platform = stack.use(await ExamplePlatform.start(join(data, "data")));
  const browser = await launchChromium();
  stack.defer(() => browser.close());
  if (values.docs) {
    const count = await photographForDocs(browser, platform, { folder: data, minutes });
    process.stdout.write(`${count} pictures are in ${DOCS_FOLDER}\n`);
    return 0;
  }
  const out = resolve(values.out);
  mkdirSync(out, { recursive: true });
  const files = await photograph(browser, platform, { out, minutes, only });
  await contactSheet(browser, files, out);
  process.stdout.write(`${files.length} pictures and contact-sheet.png are in ${out}\n`);
  return 0;
}

try {
  process.exitCode = await main();
} catch (err) {
  const isUsage = err instanceof UsageError;
  process.stderr.write(`screenshots: ${err instanceof Error ? err.message : err}\n`);
  process.exitCode = isUsage ? USAGE_EXIT_CODE : 1;
}
