/**
 * Copies of a SQLite database from before its migrations, beside it: `tessera.db.schema-7.bak` is
 * from when its schema had version 7. They are whole databases. The newest few stay.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { createPrivately } from "../../private-file.ts";

/** Copies from before migrations that stay beside a database; older ones are removed after the next. */
const MAX_MIGRATION_COPIES = 3;

/** Room on the disk that a copy has to leave for the write-ahead log of the migration. */
const MIN_FREE_AFTER_COPY_BYTES = 64 * 1024 ** 2;

const MEBIBYTE = 1024 ** 2;

/** The copy of a database from when its schema had this version. */
export function copyPath(path: string, version: number): string {
  return `${path}.schema-${version}.bak`;
}

/** How large a copy would be, and how much room there is beside the database. */
interface CopyRoom {
  readonly neededBytes: number;
  readonly freeBytes: number;
}

export function roomForCopy(db: DatabaseSync, path: string): CopyRoom {
  const pragma = (name: string): number => Number(db.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
  const pages = pragma("page_count") - pragma("freelist_count");
  const { bavail, bsize } = statfsSync(dirname(path));
  return { neededBytes: pages * pragma("page_size"), freeBytes: bavail * bsize };
}

/**
 * Copies the database; answers the path. The copy is written under another name first, so that a
 * file of this name is always whole. Throws an Error that says what to do when there is no room.
 */
export function copyBefore(
  db: DatabaseSync,
  path: string,
  version: number,
  { neededBytes, freeBytes }: CopyRoom = roomForCopy(db, path),
): string {
  const copy = copyPath(path, version);
  if (freeBytes < neededBytes + MIN_FREE_AFTER_COPY_BYTES) {
    const needed = Math.ceil((neededBytes + MIN_FREE_AFTER_COPY_BYTES) / MEBIBYTE);
    const free = Math.floor(freeBytes / MEBIBYTE);
    throw new Error(
      `its schema is migrated after a copy was made beside it, for which ${needed} MiB have to be free and ${free} MiB are: free some, or make a backup elsewhere and run tessera admin migrate --no-copy`,
    );
  }
  const unfinished = `${copy}.tmp`;
  rmSync(unfinished, { force: true });
  createPrivately(unfinished);
  db.prepare("VACUUM INTO ?").run(unfinished);
  sync(unfinished);
  renameSync(unfinished, copy);
  sync(dirname(path));
  return copy;
}

/** Removes all copies but the newest ones. */
export function removeOldCopies(path: string): void {
  const start = `${basename(path)}.schema-`;
  const versions = readdirSync(dirname(path))
    .filter((name) => name.startsWith(start))
    .flatMap((name) => /^(\d+)\.bak$/.exec(name.slice(start.length))?.[1] ?? [])
    .map(Number)
    .sort((a, b) => b - a);
  for (const version of versions.slice(MAX_MIGRATION_COPIES)) {
    rmSync(join(dirname(path), basename(copyPath(path, version))), { force: true });
  }
}

function sync(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
