/**
 * What a worker may do: under Node's permission model it starts no process, no
 * thread and no native addon, writes nothing, and reads only what it takes to
 * run the host and to import the service, unless the operator allows more.
 */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join, parse, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** What the operator allows workers besides. Native code and threads can get round the other limits. */
export interface WorkerAccess {
  /** Files, and folders with all in them, that may be read. */
  readonly read: readonly string[];
  readonly addons: boolean;
  readonly threads: boolean;
  /** Variables of their environment. */
  readonly env: { readonly [name: string]: string };
}

/** The folders of source that a worker loads: its program, the SDK and what both stand on. */
const WORKER_FOLDERS = ["collections", "protocol", "sdk", "worker"];

/** Packages looked through for links to elsewhere, in one `node_modules`. */
const MAX_PACKAGES = 5000;

/**
 * The `execArgv` for a worker: the permission model, with reading allowed of
 * - the worker's own program with the SDK, and the `package.json` that says
 *   that its files are ES modules;
 * - the service's folder;
 * - every `node_modules` and `package.json` from there up, for resolution, and
 *   where packages of these are links, as in a workspace, what they point to;
 * - what the operator allows.
 *
 * A service that is self-contained, as in an artifact, has its packages in its
 * folder and reads nothing of those that lie around it.
 *
 * Nothing may be written: the pool adds a scratch folder.
 */
export function workerPermissions(
  {
    servicePath,
    selfContained = false,
  }: { readonly servicePath: string; readonly selfContained?: boolean },
  access?: WorkerAccess,
): string[] {
  const source = realpathSync(fileURLToPath(new URL("../", import.meta.url)));
  const own = WORKER_FOLDERS.map((name) => join(source, name));
  const allowed = [...own, ...nearestPackage(source)];
  const serviceFolder = dirname(servicePath);
  allowed.push(serviceFolder);
  for (const folder of selfContained ? [] : upwards(serviceFolder)) {
    allowed.push(...existing(join(folder, "package.json")));
    for (const packages of existing(join(folder, "node_modules"))) {
      allowed.push(packages, ...linkTargets(packages));
    }
  }
  for (const path of access?.read ?? []) {
    allowed.push(path, ...existing(path).map((found) => realpathSync(found)));
  }
  return [
    "--permission",
    ...withoutCovered(allowed).map((path) => `--allow-fs-read=${path}`),
    ...(access?.addons ? ["--allow-addons"] : []),
    ...(access?.threads ? ["--allow-worker"] : []),
    // Node's warning of what the operator has chosen to allow.
    ...(access?.addons || access?.threads ? ["--disable-warning=SecurityWarning"] : []),
  ];
}

function nearestPackage(folder: string): string[] {
  for (const current of upwards(folder)) {
    const found = existing(join(current, "package.json"));
    if (found.length > 0) {
      return found;
    }
  }
  return [];
}

/** The folder and all that it lies in, the root last. */
function upwards(folder: string): string[] {
  const { root } = parse(folder);
  const folders = [folder];
  for (let current = folder; current !== root; ) {
    current = dirname(current);
    folders.push(current);
  }
  return folders;
}

function existing(path: string): string[] {
  return existsSync(path) ? [path] : [];
}

/** The real places of a `node_modules` that is a link, and of its packages that are. */
function linkTargets(packages: string): string[] {
  const targets = [realpathSync(packages)];
  let looked = 0;
  for (const entry of readdirSync(packages, { withFileTypes: true })) {
    if (entry.name.startsWith("@") && entry.isDirectory()) {
      const scope = join(packages, entry.name);
      for (const scoped of readdirSync(scope, { withFileTypes: true })) {
        targets.push(...linkTarget(join(scope, scoped.name), scoped.isSymbolicLink()));
      }
    } else if (!entry.name.startsWith(".")) {
      targets.push(...linkTarget(join(packages, entry.name), entry.isSymbolicLink()));
    }
    looked += 1;
    if (looked >= MAX_PACKAGES) {
      break;
    }
  }
  return targets;
}

function linkTarget(path: string, isLink: boolean): string[] {
  return isLink && existsSync(path) ? [realpathSync(path)] : [];
}

/** Each path once, without those inside another. */
function withoutCovered(paths: readonly string[]): string[] {
  const unique = [...new Set(paths)];
  return unique.filter(
    (path) => !unique.some((other) => other !== path && path.startsWith(withSeparator(other))),
  );
}

function withSeparator(path: string): string {
  return path.endsWith(sep) ? path : path + sep;
}
