/**
 * The pieces of one streamed call between its worker and its reader: a queue of at most the
 * credit that the worker has. What the reader takes is given as credit again, so a reader that
 * is slow stops the function behind it.
 */
import type { Execution, ExecutionEnd } from "../pool/execution.ts";
import type { Piece } from "../pool/received-chunks.ts";

export class PieceQueue {
  readonly #pieces: Piece[] = [];
  #execution: Execution | undefined;
  #end: ExecutionEnd | undefined;
  #wake: (() => void) | undefined;

  begin(execution: Execution): void {
    this.#execution = execution;
  }

  push(piece: Piece): void {
    this.#pieces.push(piece);
    this.#wake?.();
  }

  /** How the call ended; only the first end counts. */
  end(end: ExecutionEnd): void {
    this.#end ??= end;
    this.#wake?.();
  }

  /** The reader leaves: a call that has not ended is aborted. */
  leave(): void {
    if (this.#end === undefined) {
      this.#execution?.abort("caller_gone");
    }
  }

  /** The next piece, or the end once all pieces were taken. */
  async next(): Promise<{ readonly piece: Piece } | { readonly end: ExecutionEnd }> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
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
