/**
 * The blob store port: bytes of files that are too large for a database row. A
 * blob is written once under a fresh id and never changes. The storage port's
 * registry knows which blobs should exist; a blob store only keeps bytes.
 *
 * Every adapter keeps these promises, and the contract suite checks them:
 * - `write` resolves when the bytes are durable. A failed write leaves no blob;
 *   it removes what it had written, or `delete` does when the process was
 *   killed.
 * - Reading and writing hold only a few chunks in memory, with back-pressure: a
 *   source is read no faster than its chunks are written.
 * - Failures of the store itself are STORAGE_UNAVAILABLE; an error of a write's
 *   source is rethrown unchanged.
 */
import { type Problem, problem } from "../errors.ts";
import { isDiskFull } from "./unavailable.ts";

/** A half-open range of bytes: from `start`, counted from 0, to before `end`. */
export interface ByteRange {
  readonly start: number;
  /** At most the blob's size, or `Infinity`. */
  readonly end: number;
}

export const WHOLE: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY };

export interface BlobStore extends AsyncDisposable {
  /** Prepares the store. Rejects with one message that says what to do. */
  start(): Promise<void>;

  /** Stores a blob under an unused id. */
  write(blobId: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;

  /** Reads a blob in chunks. Throws `BlobMissing` when any of its bytes is missing. */
  read(blobId: string, range?: ByteRange): AsyncIterable<Uint8Array>;

  /** Deletes blobs and the remains of interrupted writes; ignores missing ones. */
  delete(blobIds: readonly string[]): Promise<void>;
}

/** Thrown by `read` when bytes are missing from the store: something outside removed them. */
export class BlobMissing extends Error {
  override readonly name = "BlobMissing";

  constructor(blobId: string, options?: ErrorOptions) {
    super(`blob ${blobId} is not in the blob store, or not all of it`, options);
  }
}

/** Makes the STORAGE_UNAVAILABLE problem that callers see; `cause` is for the log. */
export function blobsUnavailable(cause: unknown): Problem {
  const message = isDiskFull(cause)
    ? "the disk of the large files is full, so nothing was accepted: try again when the operator has made room"
    : "the store of large files does not answer; nothing was accepted, try again";
  return problem("STORAGE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

/** The chunks of a write. Tells a failure of their source from one of the store. */
export class Source implements AsyncIterable<Uint8Array> {
  readonly #chunks: AsyncIterable<Uint8Array>;
  #failure: { readonly err: unknown } | undefined;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* this.#chunks;
    } catch (err) {
      this.#failure = { err };
      throw err;
    }
  }

  /** Maps what a write threw to the error to throw: the source's own, or `blobsUnavailable`. */
  errorFor(thrown: unknown): unknown {
    return this.#failure === undefined ? blobsUnavailable(thrown) : this.#failure.err;
  }
}

/** Returns a blob id that is safe in paths and keys; throws on any other text. */
export function checkBlobId(blobId: string): string {
  if (!/^[0-9a-f-]{32,40}$/.test(blobId)) {
    throw new TypeError(`${JSON.stringify(blobId)} is not the id of a blob`);
  }
  return blobId;
}
