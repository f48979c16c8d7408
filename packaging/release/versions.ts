/** Where the version of a release stands: npm, Python, the chart, the compose file. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../program.ts";

/** Each pattern matches once in its file; its only group is the version. */
export const PLACES: readonly (readonly [file: string, pattern: RegExp])[] = [
  ["package.json", /^ {2}"version": "([^"]+)",$/m],
  ["package-lock.json", /^\{\n {2}"name": "[^"]+",\n {2}"version": "([^"]+)",$/m],
  ["package-lock.json", /^ {4}"": \{\n {6}"name": "[^"]+",\n {6}"version": "([^"]+)",$/m],
  ["clients/python/src/tessera/version.py", /^__version__ = "([^"]+)"$/m],
  ["charts/tessera/Chart.yaml", /^version: (\S+)$/m],
  ["charts/tessera/Chart.yaml", /^appVersion: (\S+)$/m],
  ["packaging/compose/compose.yaml", /TESSERA_IMAGE:-tessera:([^}]+)\}/],
];

/** The version at each place, `file: version`. Throws where a place has none. */
export function versions(): { readonly file: string; readonly version: string }[] {
  return PLACES.map(([file, pattern]) => {
    const version = pattern.exec(readFileSync(join(ROOT, file), "utf8"))?.[1];
    if (version === undefined) {
      throw new Error(`${file} has no version where ${pattern} says it is`);
    }
    return { file, version };
  });
}

/** Writes a version to every place. */
export function setVersion(version: string): void {
  for (const [file, pattern] of PLACES) {
    const path = join(ROOT, file);
    const text = readFileSync(path, "utf8");
    const set = (match: string, old: string): string => {
      const at = match.lastIndexOf(old);
      return match.slice(0, at) + version + match.slice(at + old.length);
    };
    writeFileSync(path, text.replace(pattern, set));
  }
}

/** The section of the changelog that a version has, without its heading; undefined where there is none. */
export function changelogOf(version: string, changelog: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => {
    const heading = section.slice(0, section.indexOf("\n"));
    return heading === version || heading.startsWith(`${version} `) || heading === `[${version}]`;
  });
  return found?.slice(found.indexOf("\n") + 1).trim();
}
