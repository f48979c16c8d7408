import { takeLock } from "../lock-file.ts";

/**
 * Takes the lock that lets one process at a time serve a database file: a
 * second process would treat the first one's running tasks as abandoned. The
 * lock is a separate file beside the database, which stays open to tools.
 *
 * Returns a function that releases the lock. Throws an Error whose message says
 * what to do.
 */
export function lockDatabase(path: string): () => void {
  const refused = (reason: string, cause?: unknown): Error =>
    new Error(`cannot open the database ${path}: ${reason}`, { cause });
  let release: (() => void) | undefined;
  try {
    release = takeLock(`${path}-lock`);
  } catch (err) {
    const message = err instanceof Error ? err.message : String(err);
    throw refused(`${message} (can this user write to its folder?)`, err);
  }
  if (release === undefined) {
    throw refused("another tessera process is using it; stop that one, or use another file");
  }
  return release;
}
