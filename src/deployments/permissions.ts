/**
 * The rights of a worker. By default it may start no process, no thread and no
 * native addon, write its scratch folder and its cache only, and read only what its program and
 * the import of the service need. The operator may allow more.
 */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join, parse, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { WorkerRights } from "../pool/launch/launch.ts";

/** Additional rights from the operator. Native code and threads can evade the other limits. */
export interface WorkerAccess {
  /** Files and folders that may be read; folders with everything inside. */
  readonly read: readonly string[];
  readonly addons: boolean;
  readonly threads: boolean;
  readonly processes: boolean;
  /** Environment variables of the workers. */
  readonly env: { readonly [name: string]: string };
}

interface RightsOptions {
  readonly servicePath: string;
  /** Its packages are in its own folder. Default: false. */
  readonly selfContained?: boolean;
  readonly scratchFolder: string;
  readonly cacheFolder?: string | undefined;
  /** Default: true. */
  readonly sqlite?: boolean;
}

/** The source folders that a worker loads: its program, the SDK and their dependencies. */
const WORKER_FOLDERS = ["collections", "protocol", "sdk", "worker"];
/** The package that it loads, for functions with a WebSocket. */
const WORKER_PACKAGE = "ws";

/** Packages searched for links to other folders, in one `node_modules`. */
const MAX_SCANNED_PACKAGES = 5000;

/**
 * The rights of a worker: it writes its scratch folder and its cache, and reads
 * - the worker's own program with the SDK, the package that it needs, and the `package.json` that says
 *   that its files are ES modules;
 * - the service's folder;
 * - every `node_modules` and `package.json` from there up, for resolution, and the
 *   targets of packages that are links, as in a workspace;
 * - what the operator allows.
 *
 * A self-contained service, as in an artifact, has its packages in its own folder
 * and may not read those of parent folders.
 */
export function workerRights(
  { servicePath, selfContained = false, scratchFolder, cacheFolder, sqlite = true }: RightsOptions,
  access?: WorkerAccess,
): WorkerRights {
  const source = realpathSync(fileURLToPath(new URL("../", import.meta.url)));
  const own = WORKER_FOLDERS.map((name) => join(source, name));
  const allowed = [...own, ...nearestPackage(source), ...installed(WORKER_PACKAGE, source)];
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
  return {
    read: withoutCovered(allowed),
    write: [scratchFolder, ...(cacheFolder === undefined ? [] : [cacheFolder])],
    addons: access?.addons ?? false,
    threads: access?.threads ?? false,
    processes: access?.processes ?? false,
    sqlite,
  };
}

/** The folder of a package that is found from a folder; where it is a link, that, too. */
function installed(name: string, from: string): string[] {
  for (const current of upwards(from)) {
    const found = existing(join(current, "node_modules", name));
    if (found.length > 0) {
      return [...found, ...found.map((path) => realpathSync(path))];
    }
  }
  return [];
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

/** The folder and its parents, the root last. */
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

/** The real paths of a `node_modules` and of its packages that are symbolic links. */
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
    if (looked >= MAX_SCANNED_PACKAGES) {
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
