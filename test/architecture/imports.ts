/** Reads the files of the repository and the imports between them. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface Import {
  /** From the repository's root, such as `src/server/rest/request.ts`. */
  readonly from: string;
  /** The same, or the name of a package. */
  readonly to: string;
  readonly typeOnly: boolean;
  /** Loaded when the code that names it runs, not with its file. */
  readonly dynamic: boolean;
}

/** Source files below a folder, from the root, without generated ones. */
export function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:[cm]?[jt]sx?|css|html)$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !/(?:^|\/)(?:node_modules|gen)\//.test(path));
}

export function read(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

const STATEMENT =
  /^(?:import|export)\s+(?<type>type\s)?(?:[^;"']*?\sfrom\s+)?["'](?<static>[^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["'](?<dynamic>[^"']+)["']/g;

function importsOf(from: string): Import[] {
  const text = read(from);
  return [...text.matchAll(STATEMENT), ...text.matchAll(DYNAMIC)].map(({ groups = {} }) => {
    const target = groups.static ?? groups.dynamic ?? "";
    const local = target.startsWith(".");
    return {
      from,
      to: local ? join(dirname(from), target).split(sep).join("/") : target,
      typeOnly: groups.type !== undefined,
      dynamic: groups.dynamic !== undefined,
    };
  });
}

export const source = filesBelow("src");
// The page's own modules import each other in the browser, and nothing else.
export const modules = source.filter((path) => /\.tsx?$/.test(path));
export const imports = modules.flatMap(importsOf);

/** Imports of files under a path, without those of the files there among themselves. */
export function importsFrom(...paths: readonly string[]): Import[] {
  const inside = (path: string): boolean => paths.some((start) => path.startsWith(start));
  return imports.filter(({ from, to }) => inside(from) && !inside(to));
}

export function describeImport({ from, to, typeOnly, dynamic }: Import): string {
  return `${from} -> ${to}${typeOnly ? " (types)" : dynamic ? " (dynamic)" : ""}`;
}

/** A package, not a file of this repository. */
export function isPackage({ to }: Import): boolean {
  return !/^(?:src|gen)\//.test(to);
}

/** The text of a file without comments, roughly: strings stay, also those with slashes. */
export function code(path: string): string {
  return read(path)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "$1");
}
