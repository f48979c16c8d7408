/**
 * Which paths may stand in an artifact: relative ones with slashes, which mean
 * the same file on every system that may unpack them, and never one outside.
 */
import { ArtifactError, quoted } from "./artifact-error.ts";

/** What every common file system takes as one name. */
const MAX_NAME_BYTES = 255;
/** Leaves room for the folder that an artifact is unpacked in, where paths end at 4,096 bytes. */
const MAX_PATH_BYTES = 1_024;

// Control characters, and what Windows takes for a drive, a stream or a folder's end.
const FORBIDDEN = /[\p{Cc}\\:]/u;

/** Throws an `ArtifactError` for a path that may not stand in an artifact. */
export function checkPath(path: string): void {
  const fault = faultOf(path);
  if (fault !== undefined) {
    throw new ArtifactError(`path ${quoted(path)} ${fault}`);
  }
}

function faultOf(path: string): string | undefined {
  if (path.startsWith("/")) {
    return "is absolute; paths in an artifact begin at its root";
  }
  const names = path.split("/");
  if (names.includes("..")) {
    return "leads out of the artifact";
  }
  if (names.includes("") || names.includes(".")) {
    return "has an empty or a superfluous part";
  }
  if (FORBIDDEN.test(path)) {
    return "has a backslash, a colon or a control character, which not every system takes";
  }
  if (!path.isWellFormed()) {
    return "is not valid Unicode";
  }
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    return `has a part of more than ${MAX_NAME_BYTES} bytes`;
  }
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    return `is longer than ${MAX_PATH_BYTES} bytes`;
  }
  return undefined;
}

/**
 * Throws an `ArtifactError` when two of the paths would be one file somewhere:
 * the same path, one that differs only in case or in how its letters are
 * composed, or a file where another path has a folder.
 */
export function checkTogether(paths: readonly string[]): void {
  const spellings = new Map<string, string>();
  const files = new Map<string, string>();
  for (const path of paths) {
    const earlier = files.get(folded(path));
    if (earlier === path) {
      throw new ArtifactError(`path ${quoted(path)} is there twice`);
    }
    if (earlier !== undefined) {
      throw colliding(earlier, path);
    }
    files.set(folded(path), path);
  }
  for (const path of paths) {
    for (let end = path.indexOf("/"); end > 0; end = path.indexOf("/", end + 1)) {
      const folder = path.slice(0, end);
      const key = folded(folder);
      const file = files.get(key);
      if (file !== undefined) {
        throw new ArtifactError(`${quoted(file)} is a file, and ${quoted(path)} lies in it`);
      }
      const earlier = spellings.get(key) ?? folder;
      if (earlier !== folder) {
        throw colliding(earlier, folder);
      }
      spellings.set(key, folder);
    }
  }
}

function colliding(first: string, second: string): ArtifactError {
  return new ArtifactError(
    `paths ${quoted(first)} and ${quoted(second)} differ only in case, and some systems have no room for both`,
  );
}

function folded(path: string): string {
  return path.normalize("NFC").toLowerCase();
}
