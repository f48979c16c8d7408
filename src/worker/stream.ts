/**
 * Streams the result of a call: asks the function for a piece only while its window has room, and
 * for the next one only when the piece before has left the process. A function that computes
 * without a pause therefore holds back none of its own pieces.
 */
import type { ResponseHead } from "../protocol/heads.ts";
import {
  type Chunk,
  MAX_INLINE_FILE_BYTES,
  MAX_INLINE_RESULT_CHARACTERS,
} from "../protocol/messages.ts";
import { StreamWindow } from "../protocol/stream-window.ts";
import type { ResultDescription } from "../sdk/result.ts";
import { OutputRefused, outputInvalid, outputRefused, pieceTooLarge } from "./failure.ts";
import { UnserialisableError, writeJson } from "./payload.ts";

/** The window of a call, for which its stream waits. */
export class SendWindow {
  /** Aborts with the call. */
  readonly signal: AbortSignal;
  readonly #window = new StreamWindow();
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.signal = signal;
    signal.addEventListener("abort", () => this.#wake?.(), { once: true });
  }

  /** This many were consumed. */
  consumed(count: number): void {
    this.#window.consumed(count);
    this.#wake?.();
  }

  /** Resolves when one more may be sent. Rejects with why the call was aborted. */
  async open(): Promise<void> {
    while (!this.#window.isOpen && !this.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.signal.throwIfAborted();
  }

  /** A chunk is sent. */
  sent(data: string | Uint8Array): void {
    this.#window.sent(data);
  }
}

export interface PieceOptions {
  readonly endpoint: string;
  readonly result: ResultDescription;
  /** Its signal tells the function's iterator to return. */
  readonly window: SendWindow;
  /** What the function has said of its answer. Throws an `OutputRefused`. */
  head(): ResponseHead | undefined;
  /**
   * Sends a chunk when it is its turn; resolves when it has left. Rejects with why the call was
   * aborted while it waited.
   */
  send(chunk: Omit<Chunk, "id">, signal: AbortSignal): Promise<void>;
}

/**
 * Sends what the function yields, and resolves with the number of chunks. Rejects with what
 * the function threw, with why it was aborted, or with an `OutputRefused`.
 */
export async function streamPieces(returned: unknown, options: PieceOptions): Promise<number> {
  const { window } = options;
  const { signal } = window;
  const pieces = iteratorOf(returned, options.endpoint);
  let ended = false;
  const leave = async (): Promise<void> => {
    try {
      await pieces.return?.();
    } catch {
      // The stream has its end: what the function throws while it leaves changes nothing.
    }
  };
  signal.addEventListener("abort", leave, { once: true });
  try {
    for (let sequence = 1; ; sequence += 1) {
      await window.open();
      ended = true;
      const { done, value } = await pieces.next();
      ended = done === true;
      signal.throwIfAborted();
      if (ended) {
        return sequence - 1;
      }
      const data = await writePiece(value, options);
      const response = sequence === 1 ? options.head() : undefined;
      window.sent(data);
      const chunk = response ? { sequence, data, response } : { sequence, data };
      await options.send(chunk, signal);
    }
  } finally {
    signal.removeEventListener("abort", leave);
    if (!ended) {
      await leave();
    }
  }
}

function iteratorOf(returned: unknown, endpoint: string): AsyncIterator<unknown> {
  const iterable = returned as Partial<AsyncIterable<unknown>> | null | undefined;
  const iterator = iterable?.[Symbol.asyncIterator]?.();
  if (iterator === undefined) {
    const message = `${endpoint} returned nothing to stream: make it an async generator, or return an async iterable`;
    throw new OutputRefused(outputInvalid(message));
  }
  return iterator;
}

/** Checks a piece and writes it in the form that its endpoint declares. */
async function writePiece(
  yielded: unknown,
  { endpoint, result }: PieceOptions,
): Promise<string | Uint8Array> {
  const checked = await result.schema?.["~standard"].validate(yielded);
  if (checked?.issues !== undefined) {
    throw new OutputRefused(outputRefused(endpoint, checked.issues));
  }
  const value = checked === undefined ? yielded : checked.value;
  switch (result.stream?.pieces) {
    case "bytes": {
      // The yielded bytes rather than the file that the schema makes of them, which has to be read.
      const bytes = yielded instanceof Uint8Array ? yielded : await bytesOf(value, endpoint);
      if (bytes.byteLength > MAX_INLINE_FILE_BYTES) {
        throw new OutputRefused(pieceTooLarge(endpoint, `${MAX_INLINE_FILE_BYTES} bytes`));
      }
      return bytes;
    }
    case "text":
      if (typeof value !== "string") {
        const message = `${endpoint} yielded a ${typeof value} where its output says a string`;
        throw new OutputRefused(outputInvalid(message));
      }
      return short(value, endpoint);
    default:
      return short(jsonOf(value, endpoint), endpoint);
  }
}

async function bytesOf(value: unknown, endpoint: string): Promise<Uint8Array> {
  if (!(value instanceof Blob)) {
    const message = `${endpoint} yielded a ${typeof value} where its output says bytes`;
    throw new OutputRefused(outputInvalid(message));
  }
  return new Uint8Array(await value.arrayBuffer());
}

function jsonOf(value: unknown, endpoint: string): string {
  try {
    return writeJson(value).json;
  } catch (err) {
    if (err instanceof UnserialisableError) {
      const message = `a piece of ${endpoint} cannot be sent: ${err.message}`;
      throw new OutputRefused(outputInvalid(message));
    }
    throw err;
  }
}

function short(text: string, endpoint: string): string {
  if (text.length > MAX_INLINE_RESULT_CHARACTERS) {
    const limit = `${MAX_INLINE_RESULT_CHARACTERS} characters`;
    throw new OutputRefused(pieceTooLarge(endpoint, limit));
  }
  return text;
}
