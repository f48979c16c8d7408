/**
 * The blobs that a Postgres database names, for a backup of the stores outside of it.
 * The database itself is copied by its own tools (`pg_dump`, pgBackRest).
 */
import { type BackupSource, digestInHex, type NamedBlob } from "../backup.ts";
import { refusal } from "./connect.ts";
import { PostgresDatabase } from "./database.ts";
import { statement } from "./session.ts";

/** How long Postgres may take to list one page of blobs for a backup: each page scans all payloads. */
const BLOB_PAGE_TIMEOUT_MS = 10 * 60_000;

/** Blobs that a backup lists at a time on Postgres: a few MB of memory, and few scans. */
const MAX_BLOBS_PER_PAGE = 20_000;

const FIND_PLATFORM = statement("SELECT to_regclass($1 || '.artifact_files') IS NOT NULL AS there");

/** Each blob once, whether tasks share it or not, in the order of the ids. */
const LIST = statement(`
  SELECT DISTINCT ON (blob_id) blob_id, bytes, sha256 FROM (
    SELECT blob_id, (about::json ->> 'size')::bigint AS bytes, about::json ->> 'sha256' AS sha256
    FROM payload_parts WHERE blob_id > $1
    UNION ALL
    SELECT blob_id, size_bytes, sha256 FROM artifact_files WHERE state = 'ready' AND blob_id > $1
  ) AS named ORDER BY blob_id LIMIT ${MAX_BLOBS_PER_PAGE}`);

const IS_NAMED = statement(`
  SELECT 1 FROM blobs WHERE blob_id = $1 AND reference_count > 0
  UNION ALL SELECT 1 FROM artifact_files WHERE blob_id = $1 AND state = 'ready'`);

export class PostgresBackup implements BackupSource {
  readonly #db: PostgresDatabase;

  private constructor(db: PostgresDatabase) {
    this.#db = db;
  }

  /** Rejects with a message that says what to do when there is no platform in the database. */
  static async open(url: string, schema = "tessera"): Promise<PostgresBackup> {
    const options = { url, schema, connections: 1, timeoutMs: BLOB_PAGE_TIMEOUT_MS };
    const db = new PostgresDatabase(options);
    try {
      const [platform] = await db.query(FIND_PLATFORM, schema);
      if (platform?.there !== true) {
        throw new Error("there is no platform in it: name its data with DATABASE_URL");
      }
      return new PostgresBackup(db);
    } catch (err) {
      await db[Symbol.asyncDispose]();
      throw refusal(url, err);
    }
  }

  async *listBlobs(): AsyncGenerator<NamedBlob> {
    let after = "";
    for (;;) {
      const rows = await this.#db.query(LIST, after);
      for (const { blob_id, bytes, sha256 } of rows) {
        after = String(blob_id);
        yield { blobId: after, sizeBytes: Number(bytes), sha256: digestInHex(String(sha256)) };
      }
      if (rows.length < MAX_BLOBS_PER_PAGE) {
        return;
      }
    }
  }

  async isNamed(blobId: string): Promise<boolean> {
    return (await this.#db.query(IS_NAMED, blobId)).length > 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#db[Symbol.asyncDispose]();
  }
}
