import { chmodSync, existsSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** The keys of a platform that has them in a file. */
export function keysPath(dataFolder: string): string {
  return join(dataFolder, "keys.json");
}

/** What a SQLite file is called until its restore is complete. */
export function restoringPath(database: string): string {
  return `${database}.restoring`;
}

/** The database of a platform that has it in its data folder, and the files that SQLite keeps beside it. */
const DATABASE_FILES = ["tessera.db", "tessera.db-wal", "tessera.db-shm", "tessera.db-lock"];

/**
 * Makes the data folder, which its owner alone may enter, and sees that its owner
 * alone may read the database in it. Throws a message that says what to do.
 */
export function openDataFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // It may have been made by hand, for the keys or the configuration to be put there.
    tighten(path, 0o700);
    // Earlier versions created these files readable by everyone.
    for (const file of DATABASE_FILES.map((name) => join(path, name)).filter(existsSync)) {
      tighten(file, 0o600);
    }
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    throw new Error(
      `cannot use the data folder ${path}: ${reason}; name another with --data, or let this user write there`,
      { cause: err },
    );
  }
}

/** Takes what others than its owner may do, if this process may. */
function tighten(path: string, allowed: number): void {
  const { mode, uid } = statSync(path);
  if ((mode & 0o077) !== 0 && uid === process.getuid?.()) {
    chmodSync(path, allowed);
  }
}
