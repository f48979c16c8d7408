/** The backup port: what a backup reads of a platform's data, and what a restore changes in it. */

/** A blob that tasks or artifacts name, with what its bytes have to be. */
export interface NamedBlob {
  readonly blobId: string;
  readonly sizeBytes: number;
  /** In hex. */
  readonly sha256: string;
}

/** The data of a platform as a backup reads it, while nodes run on it. */
export interface BackupSource extends AsyncDisposable {
  /**
   * Lists the blobs that are named, each once. Where the database was copied, they are
   * those of the copy; it holds a bounded number in memory.
   */
  listBlobs(): AsyncIterable<NamedBlob>;

  /** Whether the live database names the blob still. */
  isNamed(blobId: string): Promise<boolean>;
}

/** How far a copy of a database is. */
export interface CopyProgress {
  readonly copiedBytes: number;
  readonly totalBytes: number;
}

/** The part of the storage port for data that was copied or restored. */
export interface RestorableStorage {
  /**
   * Begins a new epoch on data that was restored from a backup: what the earlier
   * life of the platform had under way holds nothing any more. Running attempts
   * return to their place in the queue, which counts against nobody; leases,
   * nodes, sessions and pending logins end; and change events are numbered from
   * far beyond the earlier ones, so that no node takes a cache for current.
   * Returns how many tasks were running.
   */
  beginEpoch(parameters: { readonly nowMs: number }): Promise<number>;

  /** Returns a few blobs that artifacts and tasks name, of each at most five. */
  findBlobs(): Promise<string[]>;
}

/** The digest of a blob in hex: tasks have it in base64url, artifacts in hex. */
export function digestInHex(stored: string): string {
  return /^[0-9a-f]{64}$/.test(stored) ? stored : Buffer.from(stored, "base64url").toString("hex");
}
