/** The shared libraries that programs need, found by `ldd` as the loader would find them. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "../run.ts";

/** Absolute paths of the libraries of `programs`, the loader included, sorted. */
export function librariesOf(programs: readonly string[]): string[] {
  const found = new Set<string>();
  for (const program of programs) {
    for (const line of run("ldd", [program]).split("\n")) {
      if (line.includes("not found")) {
        throw new Error(`${program} needs a library that this machine lacks:${line}`);
      }
      const path = /(?:=> |^\s*)(\/\S+) \(0x/.exec(line)?.[1];
      if (path !== undefined) {
        found.add(path);
      }
    }
  }
  return [...found].sort();
}

/** Native modules below a folder: they are loaded later, and may need libraries that Node does not. */
export function nativeModules(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".node"))
    .map((path) => join(folder, path))
    .sort();
}
