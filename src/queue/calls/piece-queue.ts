/**
 * The pieces of one streamed call between its worker and its reader: a queue of at most the
 * credit that the worker has. What the reader takes is given as credit again, so a reader that
 * is slow stops the function behind it.
 */
import { SharedBound } from "../../collections/shared-bound.ts";
import { type Problem, problem } from "../../errors.ts";
import type { Execution, ExecutionEnd } from "../../pool/calls/execution.ts";
import type { Piece } from "../../pool/calls/received-chunks.ts";

/** Pieces of all streams of a node that wait for their readers. */
const MAX_HELD_PIECE_BYTES = 256 * 1024 ** 2;

/** The `retry-after` of a stream that was ended because others fill the memory. */
const HELD_PIECES_RETRY_AFTER_MS = 1_000;

export class PieceQueue {
  readonly #held: HeldPieces;
  #pieces: Piece[] = [];
  #execution: Execution | undefined;
  #end: ExecutionEnd | undefined;
  #wake: (() => void) | undefined;
  #hasBegun = false;

  constructor(held: HeldPieces) {
    this.#held = held;
  }

  /** Follows an execution, the only one or one more of the same call. */
  begin(execution: Execution): void {
    this.#execution = execution;
    if (this.#end !== undefined) {
      execution.abort("caller_gone");
    }
  }

  /** True while no piece has come, and the reader has not left. */
  get isUntouched(): boolean {
    return !this.#hasBegun && this.#end === undefined;
  }

  /** Adds a piece. Ends the stream instead if the node holds too many already. */
  push(piece: Piece): void {
    if (this.#end !== undefined) {
      return;
    }
    this.#hasBegun = true;
    const busy = this.#held.take(bytesOf(piece));
    if (busy === undefined) {
      this.#pieces.push(piece);
      this.#wake?.();
    } else {
      this.end({ kind: "unavailable", problem: busy });
      this.#execution?.abort("cancelled");
    }
  }

  /** How the call ended; only the first end counts. */
  end(end: ExecutionEnd): void {
    this.#end ??= end;
    this.#wake?.();
  }

  /** The reader leaves: what is left is dropped, and a call that has not ended is aborted. */
  leave(): void {
    for (const piece of this.#pieces) {
      this.#held.give(bytesOf(piece));
    }
    this.#pieces = [];
    if (this.#end === undefined) {
      this.#end = { kind: "aborted", reason: "caller_gone" };
      this.#execution?.abort("caller_gone");
    }
  }

  /** The next piece, or the end once all pieces were taken. */
  async next(): Promise<{ readonly piece: Piece } | { readonly end: ExecutionEnd }> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#held.give(bytesOf(piece));
        this.#execution?.more(1);
        return { piece };
      }
      if (this.#end !== undefined) {
        return { end: this.#end };
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/** In UTF-8, in which no text is smaller than in memory: that is two bytes for each Chinese character. */
export function bytesOf(piece: Piece): number {
  return typeof piece === "string" ? Buffer.byteLength(piece) : piece.byteLength;
}

/**
 * A budget of the pieces that a node holds for readers which are slower than their functions.
 * Each stream has its own window, but many windows together can be more than a node's memory.
 */
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
