/** Finds the installed package that a file belongs to. All paths are real paths. */
import { readFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

const SEGMENT = `${sep}node_modules${sep}`;

export interface InstalledPackage {
  /** Its folder. */
  readonly root: string;
  /** The name under which it is installed. */
  readonly name: string;
}

/** Returns the package of a file; undefined for the service's own files. */
export type FindPackage = (file: string) => InstalledPackage | undefined;

/** Files in the same installed package as the service count as the service's own. */
export function packageFinder(servicePath: string): FindPackage {
  const own = installedPackage(servicePath)?.root;
  return (file) => {
    const found = installedPackage(file);
    return found?.root === own ? undefined : found;
  };
}

function installedPackage(file: string): InstalledPackage | undefined {
  const start = file.lastIndexOf(SEGMENT);
  if (start < 0) {
    return undefined;
  }
  const inside = start + SEGMENT.length;
  const [first = "", second = ""] = file.slice(inside).split(sep, 2);
  const name = first.startsWith("@") ? `${first}/${second}` : first;
  return { root: file.slice(0, inside + name.length), name };
}

/** The package that an import names, such as `@scope/name` of `@scope/name/part`. */
export function packageNameOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

const STAYS_FILE = new RegExp(
  [
    String.raw`\b__dirname\b`,
    String.raw`\b__filename\b`,
    String.raw`\bimport\s*\.\s*meta\b`,
    String.raw`\bcreateRequire\b`,
    String.raw`\brequire\s*\.\s*(?:resolve|main|cache)\b`,
    String.raw`\bprocess\s*\.\s*(?:dlopen|binding)\b`,
    String.raw`\.node["'\`]`,
    String.raw`\b(?:require|import)\s*\(\s*(?![\s"')])`,
    String.raw`\b__esModule\b`,
  ].join("|"),
);

/**
 * True when this code of a package forces the package to stay files: the code asks
 * for its own path or loads files that are known only at run time, and would not find
 * them from a bundle; or it marks its exports with `__esModule`, whose default export
 * Node and bundlers interpret differently. False positives are harmless, because such
 * a package is only kept unchanged.
 */
export function staysFile(source: string): boolean {
  return STAYS_FILE.test(source);
}

/** The `package.json` files from the file's folder up to the package's, which say how to read it. */
export async function descriptionsOf(file: string, { root }: InstalledPackage): Promise<string[]> {
  const found: string[] = [];
  for (let folder = dirname(file); folder.length >= root.length; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    if (await readFile(path).then(Boolean, () => false)) {
      found.push(path);
    }
  }
  return found;
}
