/**
 * The program as it is shipped: the npm package with the packages that it needs
 * at run time, at the versions of package-lock.json, and Node. The image and the
 * tarball are made of it. The same sources give the same bytes: no package's
 * install script runs, and nothing in it depends on the time or on the folder.
 */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./run.ts";

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** For editors and debuggers of the packages, a quarter of their size; services are built without them. */
const NEEDLESS = /\.(?:map|d\.[cm]?ts)$/;

/** Writes the package with its packages into `folder`, which is not there yet. Needs `dist/` (npm run build). */
export function writeProgram(folder: string): void {
  if (!existsSync(join(ROOT, "dist/main.js"))) {
    throw new Error("dist/ is not built: run npm run build first");
  }
  const scratch = mkdtempSync(join(tmpdir(), "tessera-pack-"));
  try {
    const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", scratch];
    const [{ filename }] = JSON.parse(run("npm", pack, { cwd: ROOT })) as [{ filename: string }];
    run("tar", ["-xzf", join(scratch, filename), "-C", scratch]);
    const unpacked = join(scratch, "package");
    writeManifest(unpacked);
    run("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit"], { cwd: unpacked });
    for (const name of ["package-lock.json", ".npmrc", "node_modules/.package-lock.json"]) {
      rmSync(join(unpacked, name));
    }
    for (const path of readdirSync(unpacked, { recursive: true, encoding: "utf8" })) {
      if (NEEDLESS.test(path)) {
        rmSync(join(unpacked, path));
      }
    }
    mkdirSync(folder, { recursive: true });
    cpSync(unpacked, folder, { recursive: true, verbatimSymlinks: true });
    run("chmod", ["-R", "u=rwX,go=rX", folder]);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Writes `package.json` and the lock of the program into `folder`. The optional packages are
 * dependencies there: who runs an image or the tarball cannot install them.
 */
export function writeManifest(folder: string): void {
  const {
    peerDependencies,
    peerDependenciesMeta: _,
    ...manifest
  } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const dependencies = { ...manifest.dependencies, ...peerDependencies };
  const devDependencies = Object.fromEntries(
    Object.entries(manifest.devDependencies).filter(([name]) => !(name in peerDependencies)),
  );
  const written = { ...manifest, dependencies, devDependencies };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(written, null, 2)}\n`);
  copyFileSync(join(ROOT, "package-lock.json"), join(folder, "package-lock.json"));
  copyFileSync(join(ROOT, ".npmrc"), join(folder, ".npmrc"));
  // Their versions stay; which of them are for development only is told anew.
  run("npm", ["install", "--package-lock-only", "--ignore-scripts", "--offline"], { cwd: folder });
}

/** Writes the program Node that the project brings, of this machine's processor, to `path`. */
export function writeNode(path: string): void {
  copyFileSync(join(ROOT, "node_modules/node/bin/node"), path);
  chmodSync(path, 0o755);
}

/** The version of the package. */
export function programVersion(): string {
  return run(process.execPath, ["-p", "require('./package.json').version"], { cwd: ROOT });
}
