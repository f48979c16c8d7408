import { takeLock } from "../lock-file.ts";

/**
 * Makes sure that one process at a time serves a database file: a second one
 * would take the first one's running tasks for abandoned. The lock stands
 * beside the file, which itself stays open to others, so that tools can look
 * into it.
 *
 * Returns what releases the lock; throws a message that says what to do.
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
