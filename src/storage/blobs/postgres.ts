/**
 * Blobs as rows of Postgres, for nodes that share nothing but the database.
 * A blob is a series of chunks of one size, of which the last is shorter
 * (empty, where the bytes come out even): so a blob that lacks a chunk at its
 * end is known from a whole one. One chunk is in memory at a time.
 *
 * Chunks are committed one by one, because no transaction should stay open for
 * as long as a caller takes to send a file. Only the last waits for the disk:
 * the log is written in order, so those before it are there too.
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
import { PostgresDatabase } from "../postgres/database.ts";
import { prepared, statement } from "../postgres/session.ts";

/** Changing it makes what was stored before unreadable. */
const CHUNK_BYTES = 256 * 1024;

/** Chunks deleted by one statement. */
const MAX_DELETED = 1_000;

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
     SELECT blob_id, number FROM blob_chunks WHERE blob_id = $1 LIMIT ${MAX_DELETED})
   RETURNING number`,
);

export interface PostgresBlobOptions {
  /** Where the tables stand, which the storage has made. Default `tessera`. */
  readonly schema?: string;
  /** Connections at most. Default 4: a transfer holds none between two chunks. */
  readonly connections?: number;
  /** How long the database may take to answer one statement. Default 5,000. */
  readonly timeoutMs?: number;
}

export class PostgresBlobStore implements BlobStore {
  readonly #db: PostgresDatabase;

  /** `url` as for the storage, which has to be started first: its migrations make the table. */
  constructor(url: string, options: PostgresBlobOptions = {}) {
    const { schema = "tessera", connections = 4, timeoutMs = 5_000 } = options;
    this.#db = new PostgresDatabase({ url, schema, connections, timeoutMs });
  }

  async start(): Promise<void> {}

  async write(blobId: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    checkBlobId(blobId);
    const source = new Source(chunks);
    try {
      let number = 0;
      for await (const chunk of sameSize(source)) {
        if (chunk.length === CHUNK_BYTES) {
          await this.#db.together([UNHURRIED], [INSERT, blobId, number, chunk]);
        } else {
          await this.#db.query(INSERT, blobId, number, chunk);
        }
        number += 1;
      }
    } catch (err) {
      await this.delete([blobId]).catch(() => {
        // The registry knows the blob, and has it deleted later.
      });
      throw source.errorFor(err);
    }
  }

  async *read(blobId: string, { start, end }: ByteRange = WHOLE): AsyncGenerator<Uint8Array> {
    checkBlobId(blobId);
    let number = Math.floor(start / CHUNK_BYTES);
    let position = number * CHUNK_BYTES;
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
      if (chunk.length < CHUNK_BYTES) {
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
        while ((await this.#db.query(DELETE, checkBlobId(blobId))).length === MAX_DELETED) {}
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

/** The same bytes in chunks of one size; the last is shorter, and always there. */
async function* sameSize(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.length; ) {
      const part = chunk.subarray(taken, taken + CHUNK_BYTES - filled);
      buffer.set(part, filled);
      filled += part.length;
      taken += part.length;
      if (filled === CHUNK_BYTES) {
        yield buffer;
        buffer = Buffer.allocUnsafe(CHUNK_BYTES);
        filled = 0;
      }
    }
  }
  yield buffer.subarray(0, filled);
}
