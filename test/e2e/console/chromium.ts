import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PATHS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const PATH = PATHS.find((path) => existsSync(path));

/** Why no browser can be started here; undefined where one can. */
export const chromiumMissing: string | undefined =
  PATH === undefined ? "there is no Chromium here (apt-get install chromium)" : undefined;

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
