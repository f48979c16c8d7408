/**
 * The blob store on Postgres rows, for nodes that share only the database. A
 * blob is a series of chunks of equal size with a shorter last one (empty when
 * the size is an exact multiple), so a truncated blob can be told from a
 * complete one. One chunk is in memory at a time.
 *
 * Chunks are committed one by one, because no transaction should stay open
 * while a caller sends a file. Only the last commit waits for the disk: the
 * write-ahead log is in order, so the earlier chunks are durable too.
 */

import {
  BlobMissing,
  type BlobStore,
  type ByteRange,
  blobsUnavailable,
  checkBlobId,
  Source,
  WHOLE,
} from "../blobs.ts";
import { DEFAULT_STATEMENT_TIMEOUT_MS } from "../postgres/connection.ts";
import { PostgresDatabase } from "../postgres/database.ts";
import { prepared, statement } from "../postgres/session.ts";

/** Part of a blob in one row of Postgres. Changing it makes what was stored before unreadable. */
const BLOB_ROW_BYTES = 256 * 1024;

/** Connections of a node for blobs in Postgres by default. */
const DEFAULT_BLOB_CONNECTIONS = 4;

/** Rows of a blob deleted by one statement. */
const MAX_DELETED_CHUNKS = 1_000;

const UNHURRIED = statement("SET LOCAL synchronous_commit = off");

const INSERT = prepared(
  "insert_blob_chunk",
  "INSERT INTO blob_chunks (blob_id, number, data) VALUES ($1, $2, $3)",
);

const SELECT = prepared(
  "read_blob_chunk",
  "SELECT data FROM blob_chunks WHERE blob_id = $1 AND number = $2",
);

const DELETE = prepared(
  "delete_blob_chunks",
  `DELETE FROM blob_chunks WHERE (blob_id, number) IN (
     SELECT blob_id, number FROM blob_chunks WHERE blob_id = $1 LIMIT ${MAX_DELETED_CHUNKS})
   RETURNING number`,
);

interface PostgresBlobOptions {
  /** The schema with the storage's tables. Default `tessera`. */
  readonly schema?: string;
  /**
   * Maximum number of connections. Default 4: a transfer holds no connection
   * between two chunks.
   */
  readonly connections?: number;
  /** How long the database may take to answer one statement. Default 5,000. */
  readonly timeoutMs?: number;
}

export class PostgresBlobStore implements BlobStore {
  readonly #db: PostgresDatabase;

  /** `url` as for the storage, which has to be started first: its migrations create the table. */
  constructor(url: string, options: PostgresBlobOptions = {}) {
    const {
      schema = "tessera",
      connections = DEFAULT_BLOB_CONNECTIONS,
      timeoutMs = DEFAULT_STATEMENT_TIMEOUT_MS,
    } = options;
    this.#db = new PostgresDatabase({ url, schema, connections, timeoutMs });
  }

  async start(): Promise<void> {
    await this.#db.examine();
  }

  async write(blobId: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    checkBlobId(blobId);
    const source = new Source(chunks);
    try {
      let number = 0;
      for await (const chunk of sameSize(source)) {
        if (chunk.length === BLOB_ROW_BYTES) {
          await this.#db.together([UNHURRIED], [INSERT, blobId, number, chunk]);
        } else {
          await this.#db.query(INSERT, blobId, number, chunk);
        }
        number += 1;
      }
    } catch (err) {
      await this.delete([blobId]).catch(() => {
        // The registry knows the blob and deletes it later.
      });
      throw source.errorFor(err);
    }
  }

  async *read(blobId: string, { start, end }: ByteRange = WHOLE): AsyncGenerator<Uint8Array> {
    checkBlobId(blobId);
    let number = Math.floor(start / BLOB_ROW_BYTES);
    let position = number * BLOB_ROW_BYTES;
    for (;;) {
      const chunk = await this.#chunk(blobId, number);
      const wanted = chunk.subarray(Math.max(0, start - position), end - position);
      if (wanted.length > 0) {
        yield wanted;
      }
      number += 1;
      position += chunk.length;
      if (position >= end) {
        return;
      }
      if (chunk.length < BLOB_ROW_BYTES) {
        if (end !== WHOLE.end) {
          throw new BlobMissing(blobId);
        }
        return;
      }
    }
  }

  async delete(blobIds: readonly string[]): Promise<void> {
    try {
      for (const blobId of blobIds) {
        while ((await this.#db.query(DELETE, checkBlobId(blobId))).length === MAX_DELETED_CHUNKS) {}
      }
    } catch (err) {
      throw blobsUnavailable(err);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#db[Symbol.asyncDispose]();
  }

  async #chunk(blobId: string, number: number): Promise<Buffer> {
    const [row] = await this.#db.query(SELECT, blobId, number).catch((err: unknown) => {
      throw blobsUnavailable(err);
    });
    if (row === undefined) {
      throw new BlobMissing(blobId);
    }
    return row.data as Buffer;
  }
}

/** Yields the same bytes in chunks of equal size and always a shorter last one. */
async function* sameSize(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let buffer = Buffer.allocUnsafe(BLOB_ROW_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      const part = chunk.subarray(taken, taken + BLOB_ROW_BYTES - filled);
      buffer.set(part, filled);
      filled += part.length;
      taken += part.length;
      if (filled === BLOB_ROW_BYTES) {
        yield buffer;
        buffer = Buffer.allocUnsafe(BLOB_ROW_BYTES);
        filled = 0;
      }
    }
  }
  yield buffer.subarray(0, filled);
}
