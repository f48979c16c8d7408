/** Compiles src/ to dist/, copies the files that are served unchanged, and builds the console. */
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("node_modules/.bin/tsc", ["-p", "tsconfig.build.json"], {
  stdio: "inherit",
  shell: process.platform === "win32",
});
cpSync("src/console/playground", "dist/console/playground", { recursive: true });
await build({ configFile: "src/console/app/vite.config.ts", logLevel: "warn" });
compress("dist/console/app/assets");
process.exitCode = status ?? 1;

/** Writes `.br` and `.gz` beside the files of a folder, for the server to send as they are. */
function compress(folder: string): void {
  for (const name of readdirSync(folder).filter((one) => /\.(?:js|css|svg)$/.test(one))) {
    const content = readFileSync(join(folder, name));
    const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }));
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
  }
}
