/**
 * An online backup of a database file that another process serves.
 *
 * The copy is made by SQLite's own backup, page by page, within one read
 * transaction that is open from before the first page until after the last. In WAL
 * mode such a reader sees one state, however much others commit meanwhile, and
 * holds none of them up; without the transaction, every commit of another process
 * would make the backup begin again. The log cannot be reused before the reader
 * ends, so it grows by what is committed during the copy.
 */
import { backup, DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { type BackupSource, type CopyProgress, digestInHex, type NamedBlob } from "../backup.ts";
import { createPrivately } from "../private-file.ts";

/** Pages of the database that a backup copies in one step, of mostly 4 KiB each; progress is told
 * after each. */
const MAX_PAGES_PER_STEP = 2_000;

/** How long a backup waits for a lock, such as while the log is read again after a crash. */
const BACKUP_LOCK_TIMEOUT_MS = 5_000;

/**
 * Copies the database at `path` to a new file, which its owner alone may read, and
 * checks the copy. All that was committed before the call is in it. The copy needs
 * no log beside it. Rejects with a message that says what is wrong.
 */
export async function copyDatabase(
  path: string,
  copyPath: string,
  onProgress: (progress: CopyProgress) => void,
): Promise<void> {
  createPrivately(copyPath);
  const db = openReadOnly(path);
  try {
    db.exec("BEGIN");
    // A transaction begins with the first read.
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    const pageBytes = Number(db.prepare("PRAGMA page_size").get()?.page_size);
    const pages = await backup(db, copyPath, {
      rate: MAX_PAGES_PER_STEP,
      progress: ({ totalPages, remainingPages }) =>
        onProgress({
          totalBytes: totalPages * pageBytes,
          copiedBytes: (totalPages - remainingPages) * pageBytes,
        }),
    });
    db.exec("COMMIT");
    // A small file is copied in one step, of which nothing was told.
    onProgress({ totalBytes: pages * pageBytes, copiedBytes: pages * pageBytes });
  } finally {
    db.close();
  }
  closeCopy(copyPath);
}

/** Makes the copy one file, and checks that its pages fit together. */
function closeCopy(path: string): void {
  const copy = new DatabaseSync(path);
  try {
    copy.exec("PRAGMA journal_mode = DELETE");
    if (copy.prepare("SELECT 1 FROM deleted_tasks LIMIT 1").get() !== undefined) {
      // Moves of rows leave parts of them in pages that are free now, also of tasks deleted since.
      copy.exec("VACUUM");
    }
    const { quick_check: found } = copy.prepare("PRAGMA quick_check(1)").get() ?? {};
    if (found !== "ok") {
      throw new Error(`the database is damaged, and a copy of it would be, too: ${String(found)}`);
    }
  } finally {
    copy.close();
  }
}

function openReadOnly(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: BACKUP_LOCK_TIMEOUT_MS });
}

/** Each blob once, whether tasks share it or not. */
const LIST = `
  SELECT blob_id, blob_bytes AS bytes, blob_sha256 AS sha256 FROM payload_parts
  WHERE blob_id IS NOT NULL
  UNION
  SELECT blob_id, size_bytes, sha256 FROM artifact_files WHERE state = 'ready'`;

const IS_NAMED = `
  SELECT 1 FROM blobs WHERE blob_id = ?1 AND reference_count > 0
  UNION ALL SELECT 1 FROM artifact_files WHERE blob_id = ?1 AND state = 'ready'`;

/** The blobs that a copy names; the live database tells which of them are named still. */
export class SqliteBackup implements BackupSource {
  readonly #copy: DatabaseSync;
  readonly #live: DatabaseSync;

  constructor(path: string, copyPath: string) {
    this.#copy = openReadOnly(copyPath);
    this.#live = openReadOnly(path);
  }

  async *listBlobs(): AsyncGenerator<NamedBlob> {
    for (const row of this.#copy.prepare(LIST).iterate()) {
      yield toBlob(row);
    }
  }

  async isNamed(blobId: string): Promise<boolean> {
    return this.#live.prepare(IS_NAMED).get(blobId) !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#copy.close();
    this.#live.close();
  }
}

function toBlob(row: Record<string, SQLOutputValue>): NamedBlob {
  return {
    blobId: String(row.blob_id),
    sizeBytes: Number(row.bytes),
    sha256: digestInHex(String(row.sha256)),
  };
}
