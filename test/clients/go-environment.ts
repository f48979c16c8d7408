/**
 * Go for the tests: programs from the module proxy, built once and kept in
 * `node_modules/.cache`. What Go itself caches lies where it always does.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT, run } from "./python-environment.ts";

const CACHE = join(ROOT, "node_modules/.cache/go");

/** What the modules of `clients/go` ask for. */
const OLDEST = { major: 1, minor: 25 };

/** Why Go programs cannot be built here; undefined where they can. */
export const goMissing: string | undefined = missing();

function missing(): string | undefined {
  const said = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" }).stdout ?? "";
  const [, major = 0, minor = 0] = (/^go(\d+)\.(\d+)/.exec(said) ?? []).map(Number);
  if (major === 0) {
    return "Go is not installed";
  }
  const fits = major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor);
  return fits
    ? undefined
    : `Go ${OLDEST.major}.${OLDEST.minor} or newer is needed, this is ${major}.${minor}`;
}

/** Installs programs, each named as `package@version`; resolves with the folder that they are in. */
export async function goPrograms(programs: readonly string[]): Promise<string> {
  const version = await run("go", ["version"]);
  const key = createHash("sha256")
    .update(JSON.stringify([version, programs]))
    .digest("hex");
  const folder = join(CACHE, key.slice(0, 12));
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { recursive: true });
    for (const program of programs) {
      // Nobody debugs them, and tables for debuggers take time to link.
      await run("go", ["install", "-ldflags=-w", program], { env: { GOBIN: unfinished } });
    }
    renameSync(unfinished, folder);
  }
  return folder;
}
