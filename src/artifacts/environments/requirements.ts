/**
 * Reads a lock: requirements with hashes, as pip and uv read and write them
 * (pip's "Requirements File Format" and "Hash-checking mode"). A lock comes from
 * the person who deploys, so what is not the release of a package with its digests, such
 * as an option, an address or a path, is refused.
 */
import { EnvironmentError } from "./environment.ts";

/** Text of a lock: a hundred packages with the hashes of all their wheels have 200 KB. */
export const MAX_LOCK_CHARACTERS = 4 * 1024 ** 2;
/** Packages of a lock. */
const MAX_LOCKED_PACKAGES = 2_000;
/** When a package is needed: what uv writes for several platforms has some hundred characters. */
const MAX_MARKER_CHARACTERS = 2_000;

/** What comes before the digests, which the first of these texts begins. */
const FIRST_HASH = " --hash=";
const REQUIREMENT =
  /^(?<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[\w,.-]*\])? ?== ?[A-Za-z0-9.!+_-]+ ?(?:;(?<marker>.*))?$/;
const HASHES = /^(?: --hash=sha256:[0-9a-f]{64})+$/;

/**
 * A condition on the machine (PEP 508), such as `python_version >= "3.11" and (extra == 'gpu')`: its
 * variables, texts in quotes, comparisons and parentheses. Nothing in it begins an option, an
 * address, or another line.
 */
const MARKER = /^(?:[a-z_.<>=!~() ]|"[\w .+*!,-]*"|'[\w .+*!,-]*')*$/;

interface LockedPackage {
  /** As an index spells it: lower case, with hyphens (PEP 503). */
  readonly name: string;
  /** The requirement with its hashes, on one line. */
  readonly line: string;
}

/** The packages of a lock. Throws an `EnvironmentError` that names the line at fault. */
export function readLock(text: string): readonly LockedPackage[] {
  if (text.length > MAX_LOCK_CHARACTERS) {
    throw invalid(`it has more than ${MAX_LOCK_CHARACTERS} characters`);
  }
  const lines = logicalLines(text);
  if (lines.length > MAX_LOCKED_PACKAGES) {
    throw invalid(`it names ${lines.length} packages; at most ${MAX_LOCKED_PACKAGES} may be`);
  }
  return lines.map((line) => {
    const at = line.indexOf(FIRST_HASH);
    const groups = REQUIREMENT.exec(line.slice(0, Math.max(at, 0)))?.groups;
    if (groups?.name === undefined || !HASHES.test(line.slice(at))) {
      throw invalid(
        `${JSON.stringify(line.slice(0, 100))} is not the release of a package with its hashes, such as six==1.17.0 --hash=sha256:…`,
      );
    }
    checkMarker(groups.name, groups.marker ?? "");
    return { name: packageName(groups.name), line };
  });
}

/** Throws for a marker that uv might read as more than a condition. */
function checkMarker(name: string, marker: string): void {
  const shown = JSON.stringify(marker.trim().slice(0, 100));
  if (marker.length > MAX_MARKER_CHARACTERS) {
    throw invalid(
      `the marker of ${name}, ${shown}, has more than ${MAX_MARKER_CHARACTERS} characters`,
    );
  }
  const [, odd] = /( --|[@\\])/.exec(marker) ?? [];
  if (odd !== undefined || !MARKER.test(marker)) {
    const what = odd === undefined ? "" : `, because of ${JSON.stringify(odd.trim())},`;
    throw invalid(
      `the marker of ${name}, ${shown}, is${what} no condition such as ; python_version >= "3.11" and sys_platform == "linux"`,
    );
  }
}

/** A package as an index spells it (PEP 503). */
export function packageName(text: string): string {
  return text.toLowerCase().replaceAll(/[-_.]+/g, "-");
}

/** The text of a lock in its one form: a package a line, without comments. */
export function writeLock(packages: readonly LockedPackage[]): string {
  return packages.map(({ line }) => `${line}\n`).join("");
}

/** True when every requirement has hashes, so that the file is a lock by itself. */
export function isLocked(text: string): boolean {
  const lines = logicalLines(text);
  return (
    lines.length > 0 && lines.every((line) => line.includes(" --hash=") || line.startsWith("-"))
  );
}

/** Lines without comments, each with its continuations. */
function logicalLines(text: string): string[] {
  return text
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .map((line) =>
      line
        .replace(/(?:^|\s)#.*$/, "")
        .replaceAll(/\s+/g, " ")
        .trim(),
    )
    .filter((line) => line !== "");
}

function invalid(why: string): EnvironmentError {
  return new EnvironmentError(
    "LOCK_INVALID",
    `the lock of the service's packages is invalid: ${why}`,
    { isFinal: true },
  );
}
