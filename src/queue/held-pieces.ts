/**
 * A budget of the pieces that a node holds for readers which are slower than their functions.
 * Each stream has its own window, but many windows together can be more than a node's memory.
 */
import { type Problem, problem } from "../errors.ts";

/** Pieces of all streams of a node that wait for their readers. */
const MAX_HELD_PIECE_BYTES = 256 * 1024 ** 2;

/** The `retry-after` of a stream that was ended because others fill the memory. */
const HELD_PIECES_RETRY_AFTER_MS = 1_000;

export class HeldPieces {
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxBytes = MAX_HELD_PIECE_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Takes bytes. Returns SERVER_BUSY, and takes none, if so many are not left. */
  take(bytes: number): Problem | undefined {
    if (this.#bytes + bytes > this.#maxBytes) {
      const message = `the server holds ${this.#bytes} bytes of pieces that their callers have not read, of ${this.#maxBytes} that it may: read faster, or try again`;
      return problem("SERVER_BUSY", message, { retryAfterMs: HELD_PIECES_RETRY_AFTER_MS });
    }
    this.#bytes += bytes;
    return undefined;
  }

  /** Gives bytes back. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
