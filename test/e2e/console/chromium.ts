import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

/** Its headless shell, which has no windows to draw, takes half of the processor time of the whole browser. */
const PATHS = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

const PATH = PATHS.find((path) => existsSync(path));

/** Why no browser can be started here; undefined where one can. */
export const chromiumMissing: string | undefined =
  PATH === undefined
    ? "there is no Chromium here (apt-get install chromium-headless-shell)"
    : undefined;

/** Starts the browser without a window, and without calls of its own to anywhere. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: PATH ?? "",
    args: [
      ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
    ],
  });
}

let shared: Browser | undefined;

/**
 * The browser of this process, which test files that share modules use one after the other, each in
 * contexts of its own. It ends with the process.
 */
export async function sharedChromium(): Promise<Browser> {
  if (!shared?.isConnected()) {
    shared = await launchChromium();
  }
  return shared;
}

/** Closes what a file has opened in the shared browser, so that nothing of it runs beside the next. */
export async function closeContexts(): Promise<void> {
  await Promise.all(shared?.contexts().map((context) => context.close()) ?? []);
}
