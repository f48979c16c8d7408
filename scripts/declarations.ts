/** The types that importers of the package reach: files of declarations, as the compiler writes them to dist/. */
import { readFileSync } from "node:fs";
import { posix } from "node:path";

/** What declarations import: files of declarations, by their paths, and packages or Node's modules. */
interface Declarations {
  readonly files: ReadonlySet<string>;
  readonly outside: ReadonlySet<string>;
}

/** Follows the imports of files of declarations; all paths are from the current folder. */
export function declarationsOf(entries: readonly string[]): Declarations {
  const files = new Set(entries);
  const outside = new Set<string>();
  for (const file of files) {
    for (const specifier of importsOf(file)) {
      if (specifier.startsWith(".")) {
        const path = posix.join(posix.dirname(file), specifier);
        files.add(path.replace(/\.[jt]s$/, ".d.ts"));
      } else {
        outside.add(specifier);
      }
    }
  }
  return { files, outside };
}

/** The lines of comments begin otherwise. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const found = text.matchAll(
    /^(?:import|export)\b[^;"]*?\bfrom "([^"]+)";|\bimport\("([^"]+)"\)/gm,
  );
  return [...found].map(([, whole, inline]) => whole ?? inline ?? "");
}
