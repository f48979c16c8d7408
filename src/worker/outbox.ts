/**
 * Batches results and chunks: those of one turn of the event loop are sent as one message each,
 * because a message costs far more than its content, unless they are large. Results follow the
 * chunks of their calls, and the metrics that these recorded.
 */
import { MAX_HEAD_JSON_BYTES } from "../protocol/heads.ts";
import {
  type CallResult,
  type Chunk,
  MAX_CHUNKS_PER_MESSAGE,
  MAX_FAILURE_BYTES,
  MAX_RESULTS_PER_MESSAGE,
} from "../protocol/messages.ts";
import type { Channel } from "./channel.ts";
import type { Meters } from "./custom-metrics.ts";

/** Bytes of pieces that may be unsent: a result behind them waits for a few milliseconds. */
const MAX_UNSENT_BYTES = 1024 * 1024;

/** Results or chunks that are sent without waiting for others: with the last one a message is far larger. */
const LARGE_MESSAGE_BYTES = 1024 * 1024;

/** Bytes of a character in JSON, escaped. */
const MAX_BYTES_PER_CHARACTER = 6;

export class Outbox {
  readonly #channel: Channel;
  readonly #meters: Meters;
  #results: CallResult[] = [];
  /** Their size, about. */
  #bytes = 0;
  #chunks: Chunk[] = [];
  #chunkBytes = 0;
  readonly #turns = new SendTurns();

  constructor(channel: Channel, meters: Meters) {
    this.#channel = channel;
    this.#meters = meters;
  }

  add(result: CallResult): void {
    const count = this.#results.push(result);
    this.#bytes += sizeOf(result);
    if (count === 1) {
      setImmediate(() => this.flush());
    } else if (count === MAX_RESULTS_PER_MESSAGE || this.#bytes >= LARGE_MESSAGE_BYTES) {
      this.flush();
    }
  }

  /**
   * Adds a chunk when it is its turn. Resolves when it was handed to the operating system, as far
   * as that takes any. Rejects with why the call was aborted before.
   */
  async addChunk(chunk: Chunk, signal: AbortSignal): Promise<void> {
    const { data, response } = chunk;
    const bytes =
      (typeof data === "string" ? Buffer.byteLength(data) : data.byteLength) +
      (response ? MAX_HEAD_JSON_BYTES : 0);
    const turn = this.#turns.enter(bytes, signal);
    if (turn !== undefined) {
      await turn;
    }
    const count = this.#chunks.push(chunk);
    this.#chunkBytes += bytes;
    if (count === 1) {
      setImmediate(() => this.#flushChunks());
    } else if (count === MAX_CHUNKS_PER_MESSAGE || this.#chunkBytes >= LARGE_MESSAGE_BYTES) {
      this.#flushChunks();
    }
    await new Promise((resolve) => setImmediate(resolve));
  }

  #flushChunks(): void {
    const chunks = this.#chunks;
    if (chunks.length > 0) {
      const bytes = this.#chunkBytes;
      this.#chunks = [];
      this.#chunkBytes = 0;
      this.#channel.send({ type: "chunks", chunks }, () => this.#turns.left(bytes));
    }
  }

  /** Sends everything now; `sent` is called when it was handed to the operating system. */
  flush(sent?: () => void): void {
    this.#flushChunks();
    const results = this.#results;
    if (results.length > 0) {
      this.#results = [];
      this.#bytes = 0;
      this.#meters.flush();
      this.#channel.send({ type: "results", results }, sent);
    } else {
      this.#meters.flush(sent);
    }
  }
}

function sizeOf(one: CallResult): number {
  if ("failure" in one) {
    const { message, stack = "", violations } = one.failure;
    const escaped = MAX_BYTES_PER_CHARACTER * (message.length + stack.length);
    return violations ? MAX_FAILURE_BYTES : Math.min(escaped, MAX_FAILURE_BYTES);
  }
  if (typeof one.result === "string") {
    return one.result.length;
  }
  const { files, json, response } = one.result;
  const [file] = files;
  const headBytes = response ? MAX_HEAD_JSON_BYTES : 0;
  return headBytes + (file && "data" in file ? file.data.byteLength : json.length);
}

/**
 * Turns of streams at the channel. What the operating system has not taken yet is sent before
 * anything that comes later, results of other calls too; so pieces enter one after another, in the
 * order in which they came, while little of them is unsent.
 */
interface Waiting {
  readonly bytes: number;
  readonly enter: () => void;
}

export class SendTurns {
  readonly #waiting: Waiting[] = [];
  #unsentBytes = 0;

  /**
   * Takes room for a piece; a promise where others are before it. Rejects with why the call was
   * aborted meanwhile.
   */
  enter(bytes: number, signal: AbortSignal): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#hasRoom(bytes)) {
      this.#unsentBytes += bytes;
      return undefined;
    }
    if (signal.aborted) {
      // It was while the piece was checked, which takes as long as its schema does.
      return Promise.reject(signal.reason);
    }
    return new Promise((resolve, reject) => {
      const waiting = {
        bytes,
        enter: () => {
          signal.removeEventListener("abort", leave);
          resolve();
        },
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal.reason);
        this.#next();
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(waiting);
    });
  }

  /** The operating system has taken these bytes of pieces. */
  left(bytes: number): void {
    this.#unsentBytes -= bytes;
    this.#next();
  }

  #next(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (first === undefined || !this.#hasRoom(first.bytes)) {
        return;
      }
      this.#waiting.shift();
      this.#unsentBytes += first.bytes;
      first.enter();
    }
  }

  /** One piece of any size has room where none is unsent. */
  #hasRoom(bytes: number): boolean {
    return this.#unsentBytes === 0 || this.#unsentBytes + bytes <= MAX_UNSENT_BYTES;
  }
}
