/** Compiles src/ to dist/, copies the schemas of databases, and builds the console, the page of deployments and the documentation. */
import { spawnSync } from "node:child_process";
import { cpSync, globSync, rmSync } from "node:fs";
import { build } from "vite";
import { compress } from "./compress.ts";
import { declarationsOf } from "./declarations.ts";
import { buildDocumentation } from "./docs.ts";

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("node_modules/.bin/tsc", ["-p", "tsconfig.build.json"], {
  stdio: "inherit",
  shell: process.platform === "win32",
});
// Those of the program itself are for nobody: 900 files.
const { files: declarations } = declarationsOf(["dist/sdk/index.d.ts", "dist/client/index.d.ts"]);
for (const file of globSync("dist/**/*.d.ts")) {
  if (!declarations.has(file.replaceAll("\\", "/"))) {
    rmSync(file);
  }
}
for (const database of ["sqlite", "postgres"]) {
  const schema = `storage/${database}/schema.sql`;
  cpSync(`src/${schema}`, `dist/${schema}`);
}
for (const mode of ["production", "playground"]) {
  await build({ configFile: "src/console/app/vite.config.ts", mode, logLevel: "warn" });
}
compress("dist/console/app/assets", ["br", "gz"]);
await buildDocumentation();
process.exitCode = status ?? 1;
