/**
 * The serving mark: how a database file is known that was copied without its
 * write-ahead log.
 *
 * What was committed last is in the log, and SQLite removes the log only when the
 * last connection closes, after it has moved all of it into the file. So the file
 * is marked while a process serves it, and the mark is taken away before that
 * process closes it. After a crash, a marked file has its log beside it; a marked
 * file without a log was copied alone, and lacks an unknown number of commits.
 *
 * The mark is a row of `counters`, put into the file itself by a checkpoint.
 */

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { SqliteDatabase } from "./database.ts";

/** How long a process that exits without closing the database waits to take its mark away. */
const UNMARK_TIMEOUT_MS = 1_000;

const UNMARK = "UPDATE counters SET value = 0 WHERE name = 'serving'";

/** Whether a write-ahead log with content is beside the file. Asked before it is opened. */
export function hasLog(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

export function isMarked(db: SqliteDatabase): boolean {
  return db.get("SELECT value FROM counters WHERE name = 'serving'")?.value === 1;
}

/** Marks the file; outside of a transaction, so that the checkpoint can put the mark into it. */
export function mark(db: SqliteDatabase): void {
  db.run(
    `INSERT INTO counters (name, value) VALUES ('serving', 1)
     ON CONFLICT (name) DO UPDATE SET value = 1`,
  );
  // Passive: it does not wait for readers, and leaves the log's bytes where they are.
  db.all("PRAGMA wal_checkpoint(PASSIVE)");
}

export function unmark(db: SqliteDatabase): void {
  db.run(UNMARK);
}

/**
 * Takes the mark away from outside, when the process exits without an orderly end:
 * Node closes the thread's connection all the same, and with it goes the log.
 */
export function unmarkFile(path: string): void {
  try {
    const db = new DatabaseSync(path, { timeout: UNMARK_TIMEOUT_MS });
    try {
      db.exec(UNMARK);
    } finally {
      db.close();
    }
  } catch {
    // The file is gone or cannot be written; the next start tells of what it finds.
  }
}
