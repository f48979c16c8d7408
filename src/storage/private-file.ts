import { closeSync, openSync } from "node:fs";

/**
 * Creates a file that its owner alone may read, unless it is there. Never fails:
 * who opens the file next says what is wrong. SQLite gives the files that it
 * makes beside a database the permissions of the database.
 */
export function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch {
    // It is there already, or cannot be made.
  }
}
