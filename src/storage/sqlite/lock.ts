import { DatabaseSync } from "node:sqlite";

/**
 * Makes sure that one process at a time serves a database file: a second one
 * would take the first one's running tasks for abandoned. The lock is an
 * exclusive transaction on a small database beside the file, which the
 * operating system releases however the process ends. (The file itself stays
 * open to others, so that tools can look into it.)
 *
 * Returns what releases the lock; throws a message that says what to do.
 */
export function lockDatabase(path: string): () => void {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(`${path}-lock`);
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (err) {
    lock?.close();
    const message = err instanceof Error ? err.message : String(err);
    const reason = message.includes("locked")
      ? "another tessera process is using it; stop that one, or use another file"
      : `${message} (can this user write to its folder?)`;
    throw new Error(`cannot open the database ${path}: ${reason}`, { cause: err });
  }
  const held = lock;
  return () => held.close();
}
