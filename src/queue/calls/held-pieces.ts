/**
 * A budget of the pieces that a node holds for readers which are slower than their functions.
 * Each stream has its own window, but many windows together can be more than a node's memory.
 */
import { SharedBound } from "../../collections/shared-bound.ts";
import { type Problem, problem } from "../../errors.ts";

/** Pieces of all streams of a node that wait for their readers. */
const MAX_HELD_PIECE_BYTES = 256 * 1024 ** 2;

/** The `retry-after` of a stream that was ended because others fill the memory. */
const HELD_PIECES_RETRY_AFTER_MS = 1_000;

export class HeldPieces {
  readonly #bound: SharedBound;
  readonly #organizationId: string;

  constructor(bound = new SharedBound(MAX_HELD_PIECE_BYTES), organizationId = "") {
    this.#bound = bound;
    this.#organizationId = organizationId;
  }

  /** The same budget for the pieces of an organization. */
  of(organizationId: string): HeldPieces {
    return new HeldPieces(this.#bound, organizationId);
  }

  /** Takes bytes. Returns SERVER_BUSY, and takes none, if fewer are left. */
  take(bytes: number): Problem | undefined {
    if (!this.#bound.take(this.#organizationId, bytes)) {
      const message = `the server holds as many bytes of pieces that callers have not read as it may (${this.#bound.refusal(this.#organizationId, bytes)}): read faster, or try again`;
      return problem("SERVER_BUSY", message, { retryAfterMs: HELD_PIECES_RETRY_AFTER_MS });
    }
    return undefined;
  }

  /** Gives bytes back. */
  give(bytes: number): void {
    this.#bound.give(this.#organizationId, bytes);
  }
}
