/**
 * Reads a lock: requirements with hashes, as pip and uv read and write them
 * (pip's "Requirements File Format" and "Hash-checking mode"). A lock comes from
 * whoever deploys, so what is not the release of a package with its digests, such
 * as an option, an address or a path, is refused.
 */
import { EnvironmentError } from "./environment.ts";

/** Text of a lock: a hundred packages with the hashes of all their wheels have 200 KB. */
export const MAX_LOCK_CHARACTERS = 4 * 1024 ** 2;
/** Packages of a lock. */
const MAX_LOCKED_PACKAGES = 2_000;

const REQUIREMENT =
  /^(?<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?<extras>\[[\w,.-]*\])?\s*==\s*(?<version>[A-Za-z0-9.!+_-]+)\s*(?:;(?<marker>[^#]*?))?(?<hashes>(?:\s+--hash=sha256:[0-9a-f]{64})+)$/;

export interface LockedPackage {
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
    const groups = REQUIREMENT.exec(line)?.groups;
    if (groups?.name === undefined) {
      throw invalid(
        `${JSON.stringify(line.slice(0, 100))} is not the release of a package with its hashes, such as six==1.17.0 --hash=sha256:…`,
      );
    }
    return { name: packageName(groups.name), line };
  });
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
  );
}
