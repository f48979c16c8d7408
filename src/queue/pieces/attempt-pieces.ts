/**
 * The pieces of one running attempt on their way to the storage. The function gets credit for
 * further pieces only for those that are stored, so at most one window of them waits here.
 */

import type { ResponseHead } from "../../protocol/heads.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { CallFailure } from "../../protocol/messages.ts";
import type { PieceAppend, PieceData, PieceForm } from "../../storage/pieces.ts";
import type { Attempt } from "../../storage/storage.ts";

/** Pieces of one result: their numbers and what readers keep of them stay small. */
const MAX_RESULT_PIECES = 1_000_000;

export interface PieceLimits {
  /** Of all pieces together, in UTF-16 code units, with the commas between JSON values. */
  readonly maxResultBytes: number;
  /** Of all pieces together where they are bytes. */
  readonly maxFileBytes: number;
}

/** The attempt that gives the pieces. */
export interface PieceSource {
  /** This many pieces are stored: the function may make as many more. */
  stored(count: number): void;
  /** No further piece is taken. `failure` is why, and undefined when the attempt is stale. */
  refuse(failure: CallFailure | undefined): void;
}

/** Takes note of pieces that wait. */
export interface PieceSink {
  add(pieces: AttemptPieces): void;
}

interface AttemptPiecesOptions {
  readonly attempt: Attempt;
  readonly endpoint: EndpointManifest;
  readonly limits: PieceLimits;
  readonly queue: PieceSink;
  readonly source: PieceSource;
}

export class AttemptPieces {
  readonly attempt: Attempt;
  readonly form: PieceForm;
  /** What the function said of its answer. */
  response: ResponseHead | undefined;
  readonly #options: AttemptPiecesOptions;
  #waiting: PieceData[] = [];
  #received = 0;
  #length = 0;
  /** Those that are being stored. */
  #taken = 0;
  #refused = false;
  #failure: CallFailure | undefined;
  #flushed: PromiseWithResolvers<void> | undefined;

  constructor(options: AttemptPiecesOptions) {
    this.#options = options;
    this.attempt = options.attempt;
    this.form = options.endpoint.stream?.pieces ?? "json";
  }

  get endpoint(): EndpointManifest {
    return this.#options.endpoint;
  }

  /** The pieces received so far. */
  get count(): number {
    return this.#received;
  }

  /** Why pieces were refused, unless the attempt is stale. */
  get failure(): CallFailure | undefined {
    return this.#failure;
  }

  /** Takes the next piece, or refuses it and all later ones. */
  add(piece: PieceData): void {
    if (this.#refused) {
      return;
    }
    this.#received += 1;
    this.#length += piece.length + (this.form === "json" ? 1 : 0);
    const failure = this.#tooMuch();
    if (failure) {
      this.refuse(failure);
      return;
    }
    this.#waiting.push(piece);
    this.#options.queue.add(this);
  }

  /** What waits to be stored. */
  take(): PieceAppend {
    const { attempt, form } = this;
    const pieces = this.#waiting;
    this.#waiting = [];
    this.#taken = pieces.length;
    return { attempt, form, first: this.#received - pieces.length + 1, pieces };
  }

  /** What was taken is stored. */
  stored(): void {
    const count = this.#taken;
    this.#taken = 0;
    this.#options.source.stored(count);
    this.#settle();
  }

  /** What was taken is not stored, and nothing will be. */
  refuse(failure: CallFailure | undefined): void {
    this.#refused = true;
    this.#failure ??= failure;
    this.#taken = 0;
    this.#waiting = [];
    this.#options.source.refuse(failure);
    this.#settle();
  }

  /** Resolves when every piece received so far is stored or refused. */
  flushed(): Promise<void> {
    if (this.#isIdle) {
      return Promise.resolve();
    }
    this.#flushed ??= Promise.withResolvers();
    return this.#flushed.promise;
  }

  get #isIdle(): boolean {
    return this.#taken === 0 && this.#waiting.length === 0;
  }

  #settle(): void {
    if (this.#isIdle) {
      this.#flushed?.resolve();
      this.#flushed = undefined;
    }
  }

  #tooMuch(): CallFailure | undefined {
    const { endpoint, limits } = this.#options;
    const isFile = this.form === "bytes";
    const maxLength = isFile ? limits.maxFileBytes : limits.maxResultBytes;
    if (this.#length > maxLength) {
      return tooLarge(`the pieces of ${endpoint.name} together are larger than ${maxLength} bytes`);
    }
    return this.#received > MAX_RESULT_PIECES
      ? tooLarge(`${endpoint.name} gave more than ${MAX_RESULT_PIECES} pieces`)
      : undefined;
  }
}

function tooLarge(what: string): CallFailure {
  return {
    code: "internal",
    reason: "RESULT_TOO_LARGE",
    message: `${what}, which is the limit of a result: give less`,
  };
}
