/**
 * Removes folders of code that nobody trusts, which may be too deep for a path, or let nobody
 * read or write them. Nothing may write there any more.
 */
import { randomUUID } from "node:crypto";
import { chmodSync, opendirSync, renameSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";

/** Tries to remove a folder, to which a process that is just ending may still add files. */
const MAX_REMOVAL_RETRIES = 5;
/** Paths longer than this are shortened; the kernel takes 4,096. */
const MAX_PATH_CHARACTERS = 2_000;
/** Entries of a folder after which others get their turn. */
const MAX_ENTRIES_AT_A_TIME = 1_000;

export async function removeTree(folder: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: MAX_REMOVAL_RETRIES } as const;
  try {
    await rm(folder, options);
  } catch {
    for (const _ of opening(folder)) {
      await setImmediate();
    }
    await rm(folder, options);
  }
}

/** The same at once, for the start and the end of a process. */
export function removeTreeSync(folder: string): void {
  const options = { recursive: true, force: true } as const;
  try {
    rmSync(folder, options);
  } catch {
    for (const _ of opening(folder)) {
      // Nobody else waits.
    }
    rmSync(folder, options);
  }
}

/** Makes all folders accessible, and those that are too deep children of the first. */
function* opening(root: string): Generator<void> {
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    chmodSync(folder, 0o700);
    const entries = opendirSync(folder);
    const inside: string[] = [];
    let count = 0;
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      if (entry.isDirectory()) {
        inside.push(entry.name);
      }
      count += 1;
      if (count % MAX_ENTRIES_AT_A_TIME === 0) {
        yield;
      }
    }
    entries.closeSync();
    for (const name of inside) {
      const path = join(folder, name);
      if (path.length <= MAX_PATH_CHARACTERS) {
        folders.push(path);
        continue;
      }
      // A folder that may not be written cannot be moved, and nobody knows the name that it gets.
      chmodSync(path, 0o700);
      const shorter = join(root, randomUUID());
      renameSync(path, shorter);
      folders.push(shorter);
    }
    yield;
  }
}
