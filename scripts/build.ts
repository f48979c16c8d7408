/** Compiles src/ to dist/, copies the schemas of databases, and builds the console, the page of deployments and the documentation. */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { build } from "vite";
import { compress } from "./compress.ts";
import { buildDocumentation } from "./docs.ts";

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("node_modules/.bin/tsc", ["-p", "tsconfig.build.json"], {
  stdio: "inherit",
  shell: process.platform === "win32",
});
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
