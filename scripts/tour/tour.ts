/**
 * `npm run tour`: makes the moving picture of the README from a real platform: a service is
 * deployed and called, its task fails, is tried again, and succeeds. Needs ffmpeg.
 */
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Browser, Page } from "playwright-core";
import { launchChromium } from "../../test/e2e/console/chromium.ts";
import { ExamplePlatform } from "../example-platform.ts";
import { readArguments, USAGE_EXIT_CODE, UsageError } from "../usage.ts";

const USAGE = `Usage: npm run tour -- [options]

Runs the platform, deploys a service, calls its task, and makes a moving picture of it.

Options:
  --out <file>  where it goes (default: docs/pictures/tour.webp)
  --help        shows this help
`;

const VIEWPORT = { width: 1_200, height: 660 };
const FRAMES_PER_SECOND = 5;
/** Frames that the last picture stays. */
const LAST_FRAMES = 15;
/** How long the task may take until the page says that it has succeeded. */
const MAX_TASK_SECONDS = 40;
const SERVICE = "scripts/tour/forecast.ts";
const STYLE = `body { margin: 0; padding: 28px 32px; background: #141418; color: #ececf1;
  font: 17px/1.55 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; word-break: break-word }
  b { color: #a7a1ff; font-weight: 400 } i { color: #a2a2b1; font-style: normal }`;

/** The frames of the picture, in the order in which they were taken. */
class Film {
  readonly #folder: string;
  #frames = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async take(page: Page, times = 1): Promise<void> {
    const picture = await page.screenshot({ type: "png" });
    for (let time = 0; time < times; time += 1) {
      writeFileSync(join(this.#folder, `${String(this.#frames).padStart(4, "0")}.png`), picture);
      this.#frames += 1;
    }
  }

  /** Writes them as one file. */
  save(out: string): void {
    execFileSync("ffmpeg", [
      ...["-hide_banner", "-loglevel", "error", "-y", "-framerate", String(FRAMES_PER_SECOND)],
      ...["-i", join(this.#folder, "%04d.png"), "-c:v", "libwebp_anim", "-loop", "0"],
      ...["-q:v", "62", "-compression_level", "6", out],
    ]);
  }
}

/** What a terminal shows. */
class Terminal {
  readonly #page: Page;
  readonly #film: Film;
  #html = "";

  constructor(page: Page, film: Film) {
    this.#page = page;
    this.#film = film;
  }

  /** Types a command as a person does. */
  async type(command: string): Promise<void> {
    for (let end = 0; end < command.length; end += 6) {
      await this.#show(`<b>$</b> ${escaped(command.slice(0, end))}▏`);
      await this.#film.take(this.#page);
    }
    this.#html += `<b>$</b> ${escaped(command)}\n`;
    await this.#show("");
    await this.#film.take(this.#page, 2);
  }

  /** Shows what the command said, line by line. */
  async say(text: string): Promise<void> {
    for (const line of text.trim().split("\n")) {
      this.#html += `<i>${escaped(line)}</i>\n`;
      await this.#show("");
      await this.#film.take(this.#page, 2);
    }
    this.#html += "\n";
    await this.#film.take(this.#page, 3);
  }

  #show(typing: string): Promise<void> {
    return this.#page.setContent(`<style>${STYLE}</style>${this.#html}${typing}`);
  }
}

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

async function film(browser: Browser, platform: ExamplePlatform, out: string): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tessera-tour-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const frames = new Film(folder);
  const context = await browser.newContext({ viewport: VIEWPORT, colorScheme: "light" });
  const shell = await context.newPage();
  const terminal = new Terminal(shell, frames);

  await terminal.type("npx tessera deploy forecast.ts");
  const deployed = await promisify(execFile)(
    process.execPath,
    [...["bin/tessera.js", "deploy", SERVICE, "--name", "forecast"]],
    { env: { ...process.env, ...platform.developerVariables() } },
  );
  await terminal.say(
    deployed.stderr
      .split("\n")
      .filter((line) => /ready|Deployed/.test(line))
      .join("\n"),
  );

  const body = { city: "Oslo" };
  await terminal.type(`curl localhost:3000/predict/submit -d '${JSON.stringify(body)}'`);
  const page = await context.newPage();
  await platform.signIn(page);
  const answer = await platform.asked("/predict/submit", {
    method: "POST",
    headers: { "tessera-deployment": "acme/forecast", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const { task_id: id, status } = (await answer.json()) as { task_id: string; status: string };
  await terminal.say(JSON.stringify({ task_id: id, status }));

  await page.goto(`${platform.url}/o/acme/deployments/forecast/tasks/${id}`);
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  const endMs = performance.now() + MAX_TASK_SECONDS * 1_000;
  const success = page.getByText("success", { exact: true }).first();
  while (!(await success.isVisible())) {
    if (performance.now() > endMs) {
      throw new Error("the task did not succeed in time");
    }
    await frames.take(page);
    await sleep(1_000 / FRAMES_PER_SECOND / 2);
  }
  await page.getByLabel(/^(?:Content|Table) of Result/).waitFor();
  await frames.take(page, 8);
  await page.getByRole("button", { name: /^Attempt 1/ }).click();
  await page.getByRole("region", { name: "Stack" }).waitFor();
  await frames.take(page, LAST_FRAMES);
  frames.save(out);
}

async function main(): Promise<number> {
  const { values } = readArguments({
    options: {
      out: { type: "string", default: "docs/pictures/tour.webp" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const out = resolve(values.out);
  await using stack = new AsyncDisposableStack();
  const data = mkdtempSync(join(tmpdir(), "tessera-tour-data-"));
  stack.defer(() => rmSync(data, { recursive: true, force: true }));
  const platform = stack.use(await ExamplePlatform.start(join(data, "data")));
  const browser = await launchChromium();
  stack.defer(() => browser.close());
  await film(browser, platform, out);
  process.stdout.write(`${out}\n`);
  return 0;
}

try {
  process.exitCode = await main();
} catch (err) {
  const isUsage = err instanceof UsageError;
  process.stderr.write(`tour: ${err instanceof Error ? err.message : err}\n`);
  process.exitCode = isUsage ? USAGE_EXIT_CODE : 1;
}
