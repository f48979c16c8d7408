/** Builds the documentation as a site in `dist/docs/` (`npm run docs`); fails on a broken link. */
import { copyFileSync } from "node:fs";
import { build } from "vitepress";
import { compress } from "./compress.ts";

const FOLDER = "dist/docs";

export async function buildDocumentation(): Promise<void> {
  await build("docs");
  copyFileSync("src/console/app/favicon.svg", `${FOLDER}/favicon.svg`);
  // Every browser takes it; a second encoding would only make the package larger, as would a second
  // copy of the decisions, a tenth of the package, which few people read.
  compress(FOLDER, ["gz"], ["decisions/**", "assets/decisions_*"]);
}

if (import.meta.main) {
  await buildDocumentation();
}
