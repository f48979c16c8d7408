/**
 * Messages on a byte stream between a node and a worker: four bytes of length
 * (unsigned, little-endian), then the message, as JSON text or as V8 serialises
 * it (structured clone, so that bytes stay bytes). Which of them it is, its
 * first byte tells: V8's begins with 0xFF, which no text has. JSON of short
 * texts is written and read in a fourth of the time.
 *
 * Node's own IPC channel would do the same, but a frame that it cannot read
 * throws where nobody can catch it: user code that wrote a few bytes to the
 * descriptor could end the node. Here such a frame is reported, and its size
 * is known before any of it is kept.
 */
import { deserialize, serialize } from "node:v8";
import { goesAsJson, type NodeMessage, type WorkerMessage } from "./messages.ts";

const HEADER_BYTES = 4;
const HEADER_SPACE = "\0".repeat(HEADER_BYTES);

/** The first byte of what V8 serialises: its tag for the version of the format. */
const V8_TAG = 0xff;

// Taken while no user code has run: what that puts in their place is not for frames.
const { parse, stringify } = JSON;

/** @param asJson where JSON can say the same. */
export function encodeFrame(message: unknown, asJson: boolean): Buffer {
  if (asJson) {
    const frame = Buffer.from(HEADER_SPACE + stringify(message));
    frame.writeUInt32LE(frame.length - HEADER_BYTES, 0);
    return frame;
  }
  const body = serialize(message);
  const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  frame.writeUInt32LE(body.length, 0);
  body.copy(frame, HEADER_BYTES);
  return frame;
}

export function encodeMessage(message: NodeMessage | WorkerMessage): Buffer {
  return encodeFrame(message, goesAsJson(message));
}

export interface FrameReaderOptions {
  /** A larger frame breaks the stream. */
  readonly maxBytes: number;
  onMessage(message: unknown): void;
  /** The stream cannot be read any further; called once. */
  onBroken(reason: string): void;
}

/** Reads frames from the chunks of a stream. */
export class FrameReader {
  readonly #options: FrameReaderOptions;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #broken = false;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    if (this.#broken) {
      return;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (!this.#broken && this.#bytes >= HEADER_BYTES) {
      const length = this.#peek(HEADER_BYTES).readUInt32LE(0);
      if (length > this.#options.maxBytes) {
        this.#break(`it sent a message of ${length} bytes; the limit is ${this.#options.maxBytes}`);
      } else if (this.#bytes < HEADER_BYTES + length) {
        return;
      } else {
        this.#deliver(this.#take(HEADER_BYTES + length).subarray(HEADER_BYTES));
      }
    }
  }

  /** Reads nothing more, also of what has come already. */
  end(): void {
    this.#broken = true;
    this.#chunks = [];
  }

  #deliver(body: Buffer): void {
    let message: unknown;
    try {
      message = body[0] === V8_TAG ? deserialize(body) : parse(body.toString());
    } catch (err) {
      this.#break(`it sent a message that cannot be read: ${String(err)}`);
      return;
    }
    this.#options.onMessage(message);
  }

  #break(reason: string): void {
    this.end();
    this.#options.onBroken(reason);
  }

  #peek(length: number): Buffer {
    const [first] = this.#chunks;
    return first && first.length >= length ? first : this.#join();
  }

  #take(length: number): Buffer {
    const first = this.#peek(length);
    const rest = first.subarray(length);
    this.#chunks[0] = rest;
    if (rest.length === 0) {
      this.#chunks.shift();
    }
    this.#bytes -= length;
    return first.subarray(0, length);
  }

  #join(): Buffer {
    const joined = Buffer.concat(this.#chunks);
    this.#chunks = [joined];
    return joined;
  }
}
