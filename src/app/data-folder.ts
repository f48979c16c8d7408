import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** The keys of a platform that has them in a file. */
export function keysPath(dataFolder: string): string {
  return join(dataFolder, "keys.json");
}

/**
 * Makes the data folder, which its owner alone may enter. Throws a message
 * that says what to do.
 */
export function openDataFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const { mode, uid } = statSync(path);
    // It may have been made by hand, for the keys or the configuration to be put there.
    if ((mode & 0o077) !== 0 && uid === process.getuid?.()) {
      chmodSync(path, 0o700);
    }
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    throw new Error(
      `cannot use the data folder ${path}: ${reason}; name another with --data, or let this user write there`,
      { cause: err },
    );
  }
}
