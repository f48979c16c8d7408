import { DatabaseSync } from "node:sqlite";
import { createPrivately } from "./private-file.ts";

/**
 * Takes an exclusive file lock: an exclusive transaction on a small SQLite
 * database. The operating system releases it however the process ends, and
 * other containers that share the folder respect it too.
 *
 * Returns a function that releases the lock (safe to call twice), or undefined
 * when another process holds it. Throws when the file cannot be created.
 */
export function takeLock(path: string): (() => void) | undefined {
  createPrivately(path);
  const lock = new DatabaseSync(path);
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (err) {
    lock.close();
    if (err instanceof Error && err.message.includes("locked")) {
      return undefined;
    }
    throw err;
  }
  return () => {
    if (lock.isOpen) {
      lock.close();
    }
  };
}
