/**
 * The write-behind of pieces: one write for all that the running attempts of a deployment gave
 * in a turn of the event loop or, while a write is under way, since it began (group commit).
 * Credit and hints follow the commit, so no reader sees a piece that a crash takes back.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { PieceAppend, PieceStorage } from "../../storage/pieces.ts";
import type { AttemptPieces, PieceSink } from "./attempt-pieces.ts";

/** Length of the pieces of one write after which the further ones are left to the next. */
const MAX_WRITE_LENGTH_BYTES = 4 * 1024 ** 2;

/** Pause before pieces are offered again to a storage that does not answer. */
const PIECES_RETRY_PAUSE_MS = 500;

interface PieceWriterOptions {
  readonly storage: Pick<PieceStorage, "appendPieces">;
  readonly log: Log;
  /** Pieces of this task were stored. */
  onStored(taskId: string): void;
}

interface Write {
  readonly pieces: AttemptPieces;
  readonly append: PieceAppend;
}

export class PieceWriter implements PieceSink, Disposable {
  readonly #options: PieceWriterOptions;
  readonly #waiting = new Set<AttemptPieces>();
  readonly #stopped = new AbortController();
  #isWriting = false;

  constructor(options: PieceWriterOptions) {
    this.#options = options;
  }

  add(pieces: AttemptPieces): void {
    this.#waiting.add(pieces);
    if (!this.#isWriting) {
      this.#isWriting = true;
      void this.#write();
    }
  }

  /** Stops offering pieces to a storage that does not answer. */
  [Symbol.dispose](): void {
    this.#stopped.abort();
  }

  async #write(): Promise<void> {
    // At the end of the event loop's turn, so that the pieces of one turn share a write.
    await new Promise(setImmediate);
    while (this.#waiting.size > 0 && !this.#stopped.signal.aborted) {
      await this.#append(this.#take());
    }
    this.#isWriting = false;
  }

  #take(): Write[] {
    const writes: Write[] = [];
    let length = 0;
    for (const pieces of this.#waiting) {
      this.#waiting.delete(pieces);
      const append = pieces.take();
      writes.push({ pieces, append });
      length += append.pieces.reduce((sum, piece) => sum + piece.length, 0);
      if (length >= MAX_WRITE_LENGTH_BYTES) {
        break;
      }
    }
    return writes;
  }

  /** Retries for as long as the storage does not answer. Never rejects. */
  async #append(writes: readonly Write[]): Promise<void> {
    const { storage, log } = this.#options;
    const { signal } = this.#stopped;
    const appends = writes.map(({ append }) => append).filter(({ pieces }) => pieces.length > 0);
    while (appends.length > 0 && !signal.aborted) {
      try {
        const kept = await storage.appendPieces({ appends });
        this.#stored(writes, new Set(appends.filter((_, index) => kept[index])));
        return;
      } catch (err) {
        log.error({ err }, "pieces of streamed results could not be stored");
        if (toProblem(err).reason !== "STORAGE_UNAVAILABLE") {
          return this.#isolate(writes);
        }
        await sleep(PIECES_RETRY_PAUSE_MS, undefined, { signal }).catch(() => {
          // The node ends; the attempts run again.
        });
      }
    }
  }

  #stored(writes: readonly Write[], kept: ReadonlySet<PieceAppend>): void {
    for (const { pieces, append } of writes) {
      if (kept.has(append)) {
        this.#options.onStored(append.attempt.taskId);
        pieces.stored();
      } else if (append.pieces.length > 0) {
        pieces.refuse(undefined);
      }
    }
  }

  /** The storage rejects a write with an error: only the attempt that causes it fails. */
  async #isolate(writes: readonly Write[]): Promise<void> {
    const [first] = writes;
    if (first && writes.length === 1) {
      first.pieces.refuse({
        code: "internal",
        reason: "CALL_FAILED",
        message: "a piece could not be stored; the server's log has the details",
      });
      return;
    }
    for (const one of writes) {
      await this.#append([one]);
    }
  }
}
