/**
 * Validation of paths in an artifact: they are relative, use slashes, mean the same
 * file on every system, and never lead outside the artifact.
 */
import { ArtifactError, quoted } from "./artifact-error.ts";

/** One name in the path of an artifact's file: what every common file system takes. */
const MAX_PATH_SEGMENT_BYTES = 255;
/**
 * Path of a file in an artifact: leaves room for the folder that it is unpacked in, where
 * paths end at 4,096 bytes.
 */
const MAX_PATH_BYTES = 1_024;

// Control characters, and characters with a meaning on Windows: drive, stream, separator.
const FORBIDDEN = /[\p{Cc}\\:]/u;

/** Throws an `ArtifactError` for a path that an artifact may not contain. */
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
  if (names.some((name) => Buffer.byteLength(name) > MAX_PATH_SEGMENT_BYTES)) {
    return `has a part of more than ${MAX_PATH_SEGMENT_BYTES} bytes`;
  }
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    return `is longer than ${MAX_PATH_BYTES} bytes`;
  }
  return undefined;
}

/**
 * Throws an `ArtifactError` when two of the paths could be one file on some system:
 * equal paths, paths that differ only in case or Unicode normalization, or a file
 * where another path has a folder.
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
