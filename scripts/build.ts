/** Compiles src/ to dist/, and copies the files that are served unchanged. */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("node_modules/.bin/tsc", ["-p", "tsconfig.build.json"], {
  stdio: "inherit",
  shell: process.platform === "win32",
});
for (const folder of ["console/playground", "console/pages"]) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true });
}
process.exitCode = status ?? 1;
