/**
 * The attempts of one deployment that stream: their pieces are stored as they come, and an
 * attempt ends when all of them are. A success then gets the whole as its result.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../../errors.ts";
import type { FileKeeper } from "../../files/keeper.ts";
import type { Log } from "../../log/log.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { headsOf } from "../../protocol/messages.ts";
import type { PieceStorage } from "../../storage/pieces.ts";
import type { Attempt, AttemptEnd } from "../../storage/storage.ts";
import { interrupted } from "../../tasks/failure.ts";
import { raceAbort } from "../../time/race.ts";
import type { Changes } from "../changes.ts";
import { AttemptPieces, type PieceLimits, type PieceSource } from "./attempt-pieces.ts";
import { PieceHints } from "./hints.ts";
import { PiecesGone, wholeResult } from "./whole-result.ts";
import { PieceWriter } from "./writer.ts";

/** How long a storage may be away before an attempt runs again whose whole cannot be stored. */
const WHOLE_TIMEOUT_MS = 120_000;

/** Pause before the whole is made again, when the storage or the blob store does not answer. */
const WHOLE_RETRY_PAUSE_MS = 1_000;

export interface StreamedAttemptsOptions {
  readonly storage: PieceStorage;
  readonly changes: Changes;
  readonly log: Log;
  /** How large a streamed result may be. */
  readonly limits: PieceLimits;
  /** Keeps large results of tasks. */
  readonly keeper: FileKeeper;
}

export class StreamedAttempts implements Disposable {
  readonly #options: StreamedAttemptsOptions;
  readonly #writer: PieceWriter;
  readonly #hints: PieceHints;

  constructor(options: StreamedAttemptsOptions) {
    const { storage, log, changes } = options;
    this.#options = options;
    this.#hints = new PieceHints((taskId) => changes.announce(taskId));
    this.#writer = new PieceWriter({
      storage,
      log,
      onStored: (taskId) => {
        changes.hear(taskId);
        this.#hints.add(taskId);
      },
    });
  }

  /** Begins to take the pieces of an attempt. */
  begin(
    { attempt, endpoint }: { readonly attempt: Attempt; readonly endpoint: EndpointManifest },
    source: PieceSource,
  ): AttemptPieces {
    const { limits } = this.#options;
    return new AttemptPieces({ attempt, endpoint, limits, queue: this.#writer, source });
  }

  /** The end of an attempt, once its pieces are stored. */
  end(pieces: AttemptPieces, end: AttemptEnd): (givenUp: AbortSignal) => Promise<AttemptEnd> {
    return async (givenUp) => {
      await raceAbort(pieces.flushed(), givenUp);
      if (end.status !== "success") {
        return end;
      }
      // Of a stream without pieces, the end says it.
      pieces.response ??= end.result.response;
      return this.#succeed(pieces, givenUp);
    };
  }

  [Symbol.dispose](): void {
    this.#writer[Symbol.dispose]();
    this.#hints[Symbol.dispose]();
  }

  async #succeed(pieces: AttemptPieces, givenUp: AbortSignal): Promise<AttemptEnd> {
    if (pieces.failure) {
      const { code, message } = pieces.failure;
      return { status: "failure", failure: { reason: "error", code, message } };
    }
    for (const untilMs = performance.now() + WHOLE_TIMEOUT_MS; ; ) {
      try {
        const whole = await wholeResult(pieces, { ...this.#options, endpoint: pieces.endpoint });
        return { status: "success", result: { ...whole, ...headsOf(pieces) } };
      } catch (err) {
        const { attempt } = pieces;
        this.#options.log.error({ err, ...attempt }, "a streamed result could not be put together");
        const { reason, rawMessage } = toProblem(err);
        if (err instanceof PiecesGone || performance.now() > untilMs) {
          return { status: "queued", failed: false, failure: interrupted(rawMessage) };
        }
        if (reason !== "STORAGE_UNAVAILABLE") {
          return UNREADABLE;
        }
        await sleep(WHOLE_RETRY_PAUSE_MS, undefined, { signal: givenUp });
      }
    }
  }
}

const UNREADABLE: AttemptEnd = {
  status: "failure",
  failure: {
    reason: "error",
    code: "internal",
    message: "the result could not be put together; the server's log has the details",
  },
};
