/**
 * Length-prefixed frames on the byte stream between a node and a worker: four
 * bytes of length (unsigned, little-endian), then the message as JSON text or in
 * V8's serialization (structured clone, so that bytes stay bytes). The first byte
 * tells them apart: V8's is 0xFF, which no UTF-8 text contains. Short texts take a
 * fourth of the time as JSON.
 *
 * Node's own IPC channel would do the same, but a frame that it cannot read throws
 * where nobody can catch it, so user code could end the node by writing a few
 * bytes to the descriptor. Here a bad frame is reported, and the size is checked
 * before the frame is buffered.
 */
import { deserialize, serialize } from "node:v8";
import { goesAsJson, type NodeMessage, type WorkerMessage } from "./messages.ts";

const HEADER_BYTES = 4;
const HEADER_SPACE = "\0".repeat(HEADER_BYTES);

/** The first byte of V8's serialization: its version tag. */
const V8_TAG = 0xff;

// Captured before any user code runs: its replacements of these functions must not affect frames.
const { parse, stringify } = JSON;

/** Encodes a message as one frame. `asJson` only for messages that survive JSON unchanged. */
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
  /** Limit of a frame; a larger one breaks the stream. */
  readonly maxBytes: number;
  onMessage(message: unknown): void;
  /** The stream cannot be read any further. Called once. */
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

  /** Stops reading, and discards what has come already. */
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
