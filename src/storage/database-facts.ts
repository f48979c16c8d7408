/** What an operator wants to know of the database. */
export interface DatabaseFacts {
  readonly kind: "SQLite" | "Postgres";
  /** Of the program that runs it, such as `17.6`. */
  readonly version: string;
  /** On the disk, without what waits in its log. */
  readonly sizeBytes: number;
  /** Migrations that were applied. */
  readonly schemaVersion: number;
  /** Tasks that wait, by the counters that are kept of them. */
  readonly queued: number;
  /** Tasks that run, by the same. */
  readonly running: number;
  /** The further databases, each with a part of the tasks. Default: none. */
  readonly cells?: readonly { readonly name: string; readonly up: boolean }[];
}
