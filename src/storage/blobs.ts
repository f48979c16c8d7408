/**
 * The port of the blob store: files too large to stand in a row of the
 * database. A blob is written once, as a whole, under an id that was drawn for
 * it, and never changes. Which blobs there should be, the database knows (the
 * registry of the storage port); a blob store keeps bytes and no more.
 *
 * Promises that every adapter keeps, and that the contract suite checks:
 * - `write` resolves when the bytes are durable. One that fails leaves no blob,
 *   and what it had written is removed: by itself or, where the process was
 *   killed, by `delete`.
 * - Neither reading nor writing holds more than a few chunks in memory; nobody
 *   is read from faster than is written.
 * - Whatever goes wrong with the store itself is STORAGE_UNAVAILABLE; what the
 *   source of a write threw comes out as it is.
 */
import { type Problem, problem } from "../errors.ts";

/** Which bytes: from `start` to before `end`, counted from 0. */
export interface ByteRange {
  readonly start: number;
  /** May lie behind the blob's end only as `Infinity`. */
  readonly end: number;
}

export const WHOLE: ByteRange = { start: 0, end: Number.POSITIVE_INFINITY };

export interface BlobStore extends AsyncDisposable {
  /** Makes it usable. Rejects with one message that says what to do. */
  start(): Promise<void>;

  /** Stores a blob under an id that was not used before. */
  write(blobId: string, chunks: AsyncIterable<Uint8Array>): Promise<void>;

  /** The bytes of a blob, in chunks. Throws a `BlobMissing` when not all of them are there. */
  read(blobId: string, range?: ByteRange): AsyncIterable<Uint8Array>;

  /** Deletes blobs, with what interrupted writes have left of them; missing ones are none's loss. */
  delete(blobIds: readonly string[]): Promise<void>;
}

/** Bytes were asked for that are not in the store: somebody removed them from outside. */
export class BlobMissing extends Error {
  override readonly name = "BlobMissing";

  constructor(blobId: string, options?: ErrorOptions) {
    super(`blob ${blobId} is not in the blob store, or not all of it`, options);
  }
}

/** What the caller sees when the store cannot be used; `cause` is for the log. */
export function blobsUnavailable(cause: unknown): Problem {
  const message =
    "the store of large files does not answer or has no room; nothing was accepted, try again";
  return problem("STORAGE_UNAVAILABLE", message, { retryAfterMs: 1_000, cause });
}

/** Chunks on their way into a store, which remembers whether they or the store failed. */
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

  /** What to throw for what a write was ended by. */
  errorFor(thrown: unknown): unknown {
    return this.#failure === undefined ? blobsUnavailable(thrown) : this.#failure.err;
  }
}

/** Ids stand in paths and keys. Throws for what no id looks like. */
export function checkBlobId(blobId: string): string {
  if (!/^[0-9a-f-]{32,40}$/.test(blobId)) {
    throw new TypeError(`${JSON.stringify(blobId)} is not the id of a blob`);
  }
  return blobId;
}
