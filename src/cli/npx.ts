import { findPackageJSON } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGE = "tessera-platform";

/**
 * How npx runs this program in a folder: `npx tessera` where its package is
 * installed, and by the name of the package otherwise, because npx would fetch
 * another package called tessera.
 */
export function npx(folder: string): string {
  return isInstalled(PACKAGE, folder) ? "npx tessera" : `npx ${PACKAGE}`;
}

/** Whether a module in a folder can import a package, which may be installed above the folder. */
export function isInstalled(name: string, folder: string): boolean {
  try {
    findPackageJSON(name, pathToFileURL(join(folder, "importer.js")));
    return true;
  } catch {
    return false;
  }
}

/**
 * How the reader of a message runs this program in the current folder: as they have run it now,
 * by npx or an npm script, or by its name, which is then on their path.
 */
export function programCall(byNpm: boolean): string {
  return byNpm ? npx(process.cwd()) : "tessera";
}
