/**
 * The attempts of one deployment that stream: their pieces are stored as they come, and an
 * attempt ends when all of them are. A success then gets the whole as its result.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { toProblem } from "../../errors.ts";
import type { Log } from "../../log/log.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import { type FileFacts, headsOf, type Payload } from "../../protocol/messages.ts";
import { pieceTypeOf } from "../../service/piece-type.ts";
import type { FileKeeper } from "../../storage/files/keeper.ts";
import type { PieceForm, PiecePosition, PieceStorage } from "../../storage/pieces.ts";
import type { Attempt, AttemptEnd } from "../../storage/storage.ts";
import { interrupted } from "../../tasks/failure.ts";
import { raceAbort } from "../../time/race.ts";
import { ByCell } from "../by-cell.ts";
import type { Changes } from "../waits/changes.ts";
import { AttemptPieces, type PieceLimits, type PieceSource } from "./attempt-pieces.ts";
import { PieceWriter } from "./writer.ts";

/** Stored pieces read at once. */
const PIECES_READ_BYTES = 256 * 1024;

/** Least time between two hints of one task. */
const PIECE_HINT_INTERVAL_MS = 100;

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
  readonly #writers: ByCell<PieceWriter>;
  readonly #hints: PieceHints;

  constructor(options: StreamedAttemptsOptions) {
    const { storage, log, changes } = options;
    this.#options = options;
    this.#hints = new PieceHints((taskId) => changes.announceMore(taskId));
    const onStored = (taskId: string): void => {
      changes.hear({ taskId, live: true });
      this.#hints.add(taskId);
    };
    this.#writers = new ByCell(() => new PieceWriter({ storage, log, onStored }));
  }

  /** Begins to take the pieces of an attempt. */
  begin(
    { attempt, endpoint }: { readonly attempt: Attempt; readonly endpoint: EndpointManifest },
    source: PieceSource,
  ): AttemptPieces {
    const { limits } = this.#options;
    const queue = this.#writers.of(attempt.taskId);
    return new AttemptPieces({ attempt, endpoint, limits, queue, source });
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
    for (const writer of this.#writers.all()) {
      writer[Symbol.dispose]();
    }
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

/**
 * A rate limit of hints to other nodes: those that pieces of a task are stored. The first of a
 * task goes out at once, the next ones together once in an interval, so that many streams do not
 * crowd out the hints of tasks.
 */
class PieceHints implements Disposable {
  readonly #send: (taskId: string) => void;
  /** Tasks hinted at in this interval. */
  #sent = new Set<string>();
  /** Those of them that have got pieces since. */
  readonly #waiting = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (taskId: string) => void) {
    this.#send = send;
  }

  add(taskId: string): void {
    if (this.#sent.has(taskId)) {
      this.#waiting.add(taskId);
      return;
    }
    this.#sent.add(taskId);
    this.#send(taskId);
    this.#timer ??= setTimeout(() => this.#next(), PIECE_HINT_INTERVAL_MS).unref();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #next(): void {
    this.#timer = undefined;
    this.#sent = new Set();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const taskId of waiting) {
      this.add(taskId);
    }
  }
}

// The whole of a streamed result, made from its stored pieces when the function has ended: a
// JSON array, one text, or one file. It is read and kept in chunks, so a large one holds up
// neither the event loop nor memory, and goes to the blob store as other large results do.

/** Thrown when pieces are missing: the attempt has lost its lease, and no end of it counts. */
class PiecesGone extends Error {
  override readonly name = "PiecesGone";
}

interface StreamedAttempt {
  readonly attempt: Attempt;
  readonly form: PieceForm;
  /** How many pieces it gave. */
  readonly count: number;
}

interface WholeResultOptions {
  readonly storage: Pick<PieceStorage, "readPieces">;
  readonly keeper: FileKeeper;
  readonly endpoint: EndpointManifest;
}

/** Rejects with STORAGE_UNAVAILABLE, or with `PiecesGone`. */
async function wholeResult(
  streamed: StreamedAttempt,
  { storage, keeper, endpoint }: WholeResultOptions,
): Promise<Payload> {
  const facts: FileFacts = { contentType: pieceTypeOf(streamed.form, endpoint) };
  const kept = await keeper.keep(facts, chunksOf(streamed, storage));
  if (streamed.form === "bytes") {
    return { json: "0", files: [kept] };
  }
  if ("blob" in kept) {
    return { json: "", files: [], text: kept };
  }
  const text = Buffer.from(kept.data.buffer, kept.data.byteOffset, kept.data.length).toString();
  return { json: streamed.form === "json" ? text : JSON.stringify(text), files: [] };
}

/** The bytes of the whole, one chunk for each page of pieces. */
async function* chunksOf(
  { attempt, form, count }: StreamedAttempt,
  storage: WholeResultOptions["storage"],
): AsyncGenerator<Uint8Array> {
  const { deploymentId, taskId, attempt: number } = attempt;
  const isJson = form === "json";
  let after: PiecePosition = { attempt: number, sequence: 0 };
  if (isJson) {
    yield Buffer.from("[");
  }
  while (after.sequence < count) {
    const asked = { deploymentId, taskId, after, maxBytes: PIECES_READ_BYTES };
    const page = await storage.readPieces(asked);
    const last = page?.task.attempt === number ? page.pieces.at(-1) : undefined;
    if (page === undefined || last === undefined) {
      throw new PiecesGone(`piece ${after.sequence + 1} of attempt ${number} of ${taskId} is gone`);
    }
    const separator = isJson && after.sequence > 0 ? "," : "";
    const parts = page.pieces.map(({ data }) => data);
    yield typeof parts[0] === "string"
      ? Buffer.from(separator + parts.join(isJson ? "," : ""))
      : Buffer.concat(parts as Uint8Array[]);
    after = { attempt: number, sequence: last.sequence };
  }
  if (isJson) {
    yield Buffer.from("]");
  }
}
