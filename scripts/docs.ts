/** Builds the documentation as a site in `dist/docs/` (`npm run docs`); fails on a broken link. */
import { copyFileSync } from "node:fs";
import { build } from "vitepress";
import { compress } from "./compress.ts";

const FOLDER = "dist/docs";

/** A tenth of the package. */
const READ_BY_FEW = [
  "decisions/**",
  "assets/decisions_*",
  "{,assets/}{changelog,benchmarks-history,limits}.*",
];

export async function buildDocumentation(): Promise<void> {
  await build("docs");
  copyFileSync("src/console/app/favicon.svg", `${FOLDER}/favicon.svg`);
  // Every browser takes it; a second encoding would only make the package larger, as would a second
  // copy of what few people read, and of what is hardly smaller for it: VitePress's small first scripts.
  compress(FOLDER, ["gz"], [...READ_BY_FEW, "**/*.lean.js"]);
}

if (import.meta.main) {
  await buildDocumentation();
}
