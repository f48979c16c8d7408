/** Which installed package a file belongs to. All paths are real ones. */
import { readFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

const SEGMENT = `${sep}node_modules${sep}`;

export interface InstalledPackage {
  /** Its folder. */
  readonly root: string;
  /** The name under which it is installed. */
  readonly name: string;
}

/** Finds the package of a file; undefined for what is the service's own. */
export type FindPackage = (file: string) => InstalledPackage | undefined;

/** What lies in the same installed package as the service is the service's own. */
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
 * True when a package has to stay a file because of this code of it: it asks
 * where it lies, or loads what only running it tells, and would not find its
 * files from within a bundle; or its default export is what Node and bundlers
 * disagree about (`__esModule`), and here Node is right. True too often is
 * harmless, because such a package is only kept as it is.
 */
export function staysFile(source: string): boolean {
  return STAYS_FILE.test(source);
}

/** The `package.json` files, from the file's folder up to the package's, that say how it is read. */
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
