import { DatabaseSync } from "node:sqlite";

/**
 * Takes a lock that one process at a time can hold: an exclusive transaction
 * on a small SQLite database, which the operating system releases however the
 * process ends, and which other containers that share the folder respect too.
 *
 * Returns what releases the lock, where again is harmless, or undefined when another process holds it;
 * throws when the file cannot be made.
 */
export function takeLock(path: string): (() => void) | undefined {
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
