/**
 * The lock of system packages: each package of Debian (`.deb`) with its version and its digest. It
 * comes from the person who deploys.
 *
 *   ffmpeg 7:5.1.9-0+deb12u1 amd64 1874388 2f0e…
 *
 * is a line of a lock: name, version, architecture, bytes, SHA-256.
 */
import { inUnits } from "../../collections/sizes.ts";
import { isRelease } from "../../protocol/system-packages.ts";
import { EnvironmentError } from "../environments/environment.ts";

/** Text of a lock: a line of some 120 characters for each package. */
export const MAX_SYSTEM_LOCK_BYTES = 1024 ** 2;
/** Packages of a lock, with all that the named ones need: LibreOffice has some 400. */
const MAX_LOCKED_SYSTEM_PACKAGES = 1_000;
/** All packages of a lock together, as they are downloaded. */
const MAX_LOCKED_SYSTEM_BYTES = 4 * 1024 ** 3;

const LINE =
  /^(?<name>\S+) (?<version>\S+) (?<architecture>amd64|arm64|all) (?<size>[0-9]{1,12}) (?<sha256>[0-9a-f]{64})$/;

export interface LockedSystemPackage {
  readonly name: string;
  readonly version: string;
  /** As Debian calls it: `amd64`, `arm64`, or `all`. */
  readonly architecture: string;
  /** Bytes of the package as it is downloaded. */
  readonly size: number;
  readonly sha256: string;
}

/** The packages of a lock. Throws an `EnvironmentError` that names the line at fault. */
export function readSystemLock(text: string): readonly LockedSystemPackage[] {
  const lines = text.split("\n").filter((line) => line !== "");
  if (lines.length > MAX_LOCKED_SYSTEM_PACKAGES) {
    throw invalid(
      `it names ${lines.length} packages; at most ${MAX_LOCKED_SYSTEM_PACKAGES} may be: name fewer`,
    );
  }
  const packages = lines.map((line) => {
    const groups = LINE.exec(line)?.groups;
    const { name = "", version = "", architecture = "", size = "", sha256 = "" } = groups ?? {};
    if (!isRelease(name, version)) {
      throw invalid(
        `${JSON.stringify(line.slice(0, 100))} is not a package with its version, architecture, bytes and digest`,
      );
    }
    return { name, version, architecture, size: Number(size), sha256 };
  });
  const bytes = bytesOfLock(packages);
  if (bytes > MAX_LOCKED_SYSTEM_BYTES) {
    throw invalid(
      `its packages have ${inUnits(bytes)} together; at most ${inUnits(MAX_LOCKED_SYSTEM_BYTES)} may be: name fewer`,
    );
  }
  return packages;
}

/** The text of a lock in its one form: equal for equal packages. */
export function writeSystemLock(packages: readonly LockedSystemPackage[]): string {
  return packages
    .map(
      ({ name, version, architecture, size, sha256 }) =>
        `${name} ${version} ${architecture} ${size} ${sha256}\n`,
    )
    .toSorted()
    .join("");
}

/** What is downloaded for a lock, in bytes. */
export function bytesOfLock(packages: readonly LockedSystemPackage[]): number {
  return packages.reduce((sum, { size }) => sum + size, 0);
}

function invalid(why: string): EnvironmentError {
  return new EnvironmentError(
    "LOCK_INVALID",
    `the lock of its system packages is invalid: ${why}`,
    {
      isFinal: true,
    },
  );
}
