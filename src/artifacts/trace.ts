/**
 * Static tracing: finds the files that code reads or loads at run time. For the
 * service's own modules these are the files that they name relative to themselves,
 * for packages that stay files everything that they need. `@vercel/nft` finds them
 * by static evaluation, without running the code.
 */
import { existsSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { dirname, extname, join, parse, relative, resolve, sep } from "node:path";
import { nodeFileTrace, resolve as resolveDependency } from "@vercel/nft";
import { transform } from "esbuild";
import { LOADERS } from "./bundle.ts";
import { type FindPackage, type InstalledPackage, packageNameOf } from "./packages.ts";

interface TraceOptions {
  /** The service's own modules. They are in the bundle; the files they read are not. */
  readonly modules: readonly string[];
  /** Files of packages that the bundle imports. */
  readonly entries: readonly string[];
  readonly findPackage: FindPackage;
  /** True for an import that the bundle resolves. */
  readonly resolved: (importer: string, specifier: string) => boolean;
}

/** A dependency of a package, or of the service (undefined), on another package by name. */
export interface Dependency {
  readonly from: InstalledPackage | undefined;
  readonly name: string;
  readonly to: InstalledPackage;
}

interface Traced {
  /** All found files as real paths, in no order. */
  readonly files: readonly string[];
  readonly dependencies: readonly Dependency[];
  /** Files that the service's modules read but that are hidden or outside its project. */
  readonly leftOut: readonly string[];
}

/** Paths that belong to the operating system and not to a service. */
const SYSTEM = /^\/(?:bin|dev|etc|lib\d*|proc|sbin|sys|usr\/(?:bin|lib\d*|local|sbin|share))\//;

export async function traceFiles(options: TraceOptions): Promise<Traced> {
  const { modules, entries, findPackage } = options;
  const base = parse(modules[0] ?? sep).root;
  const own = new Set(modules);
  const isOwn = projectOf(modules);
  const dependencies: Dependency[] = [];
  const leftOut = new Set<string>();
  const { reasons } = await nodeFileTrace([...modules, ...entries], {
    base,
    // A worker does not run in the service's folder, so relative paths must not resolve here either.
    processCwd: join(base, "no-such-folder"),
    ignore: (path) => {
      const file = resolve(base, path);
      const ignored = findPackage(file) === undefined && !isOwn(file);
      if (ignored && !SYSTEM.test(file)) {
        leftOut.add(file);
      }
      return ignored;
    },
    readFile: (path) => readCode(path, findPackage(path) === undefined),
    // Links of package managers are resolved below, other links are followed.
    readlink: async () => null,
    resolve: async (specifier, parent, job, isRequire) => {
      if (
        specifier === "tessera-platform" ||
        (own.has(parent) && options.resolved(parent, specifier))
      ) {
        return [];
      }
      const found = [await resolveDependency(specifier, parent, job, isRequire)].flat();
      const real = await Promise.all(
        found.map((path) => (path.startsWith("node:") ? path : realpath(path))),
      );
      if (!/^[.#/]/.test(specifier)) {
        const from = findPackage(parent);
        for (const to of real.flatMap((path) => findPackage(path) ?? [])) {
          dependencies.push({ from, name: packageNameOf(specifier), to });
        }
      }
      return real;
    },
  });
  const files = [...reasons].flatMap(([path, { ignored, type, parents }]) => {
    const file = resolve(base, path);
    const isPackaged = findPackage(file) !== undefined;
    // A module that asks for its own path seems to read itself.
    const readers = [...parents].map((it) => resolve(base, it)).filter((it) => it !== file);
    // The package.json of bundled modules is not needed any more.
    const isDescription =
      type.every((it) => it === "resolve") && readers.every((it) => own.has(it));
    const wanted = isPackaged || (readers.length > 0 && !isDescription);
    return wanted && !ignored ? [isPackaged ? realpath(file) : file] : [];
  });
  return { files: [...new Set(await Promise.all(files))], dependencies, leftOut: [...leftOut] };
}

/** True for files of the service: in its project or the projects of its modules, and not hidden. */
function projectOf(modules: readonly string[]): (file: string) => boolean {
  const folders = [...new Set(modules.map((file) => projectFolder(dirname(file))))];
  return (file) =>
    folders.some((folder) => {
      const inside = relative(folder, file).split(sep);
      // A leading dot: outside the folder (`..`), or a hidden file such as .env, which must not leave.
      return !inside.some((name) => name.startsWith("."));
    });
}

/** The nearest folder with a `package.json`; without one, the folder itself. */
function projectFolder(start: string): string {
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) {
      return folder;
    }
  }
  return start;
}

/** A file's text; TypeScript is transpiled to JavaScript. */
async function readCode(path: string, isOwn: boolean): Promise<string> {
  try {
    const source = await readFile(path, "utf8");
    const loader = LOADERS[extname(path)];
    if (!isOwn || loader === undefined || loader === "js") {
      return source;
    }
    return (await transform(source, { loader, target: "esnext" })).code;
  } catch {
    // Not code, so there is nothing to trace.
    return "";
  }
}
