/**
 * Length-prefixed frames on the byte stream between a node and a worker, version 2
 * of the host protocol:
 *
 *     u32 length of the body, then the body:
 *       u8  0x01, the format
 *       u32 length of the header
 *       the header, JSON text in UTF-8
 *       the attachments, one after the other (`attachments.ts`)
 *
 * Numbers are little-endian. What is small stands in the header; long texts and the
 * bytes of files are attachments, which nobody parses or escapes.
 *
 * User code can write to the descriptor. So the reader checks each length as soon as
 * it has come and before anything is kept for it, reads the header with `JSON.parse`
 * and nothing stronger, and holds no more of a frame than the part that has arrived.
 */
import { giveBack } from "../collections/bytes.ts";
import { Attachments } from "./attachments.ts";

export const LENGTH_BYTES = 4;
/** The two lengths and the format. */
export const PREFIX_BYTES = 9;

/** The first byte of a body: a header in JSON, and attachments. */
export const FORMAT = 0x01;

/** Memory for the first parts of a frame that comes in many; it doubles as they come. */
const FIRST_PARTS_BYTES = 1024 * 1024;

// Captured before any user code runs: its replacements of these functions must not affect frames.
const { parse } = JSON;

interface FrameReaderOptions {
  /** Limit of the body of a frame; a larger one breaks the stream. */
  readonly maxBytes: number;
  /** Limit of a header. Default: that of the frame. */
  readonly maxHeaderBytes?: number;
  /** Limit of the number of attachments of a frame. Default: none. */
  readonly maxAttachments?: number;
  onMessage(header: unknown, attachments: Attachments): void;
  /** The stream cannot be read any further. Called once. */
  onBroken(reason: string): void;
}

/** Reads frames from the chunks of a stream. */
export class FrameReader {
  readonly #options: FrameReaderOptions;
  /** The frame that has come in part: room for it, the bytes that are there, and its size. */
  #part: Buffer | undefined;
  #partBytes = 0;
  /** 0 while the prefix is not complete. */
  #frameBytes = 0;
  #broken = false;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (!this.#broken && at < chunk.length) {
      at += this.#part === undefined ? this.#begin(chunk, at) : this.#resume(chunk, at);
    }
  }

  /** Stops reading, and discards what has come already. */
  end(): void {
    this.#broken = true;
    this.#part = undefined;
  }

  /** Reads a frame where it is if the chunk has all of it, else keeps what has come. */
  #begin(chunk: Buffer, at: number): number {
    const bytes = chunk.length - at;
    const frameBytes = this.#sizeOf(chunk, at, bytes);
    if (frameBytes > 0 && frameBytes <= bytes) {
      this.#deliver(chunk, at, frameBytes);
      return frameBytes;
    }
    if (!this.#broken) {
      this.#frameBytes = frameBytes;
      this.#keep(chunk, at, bytes);
    }
    return bytes;
  }

  #resume(chunk: Buffer, at: number): number {
    const goal = this.#frameBytes === 0 ? PREFIX_BYTES : this.#frameBytes;
    const bytes = Math.min(goal - this.#partBytes, chunk.length - at);
    const part = this.#keep(chunk, at, bytes);
    if (this.#frameBytes === 0) {
      this.#frameBytes = this.#sizeOf(part, 0, this.#partBytes);
    }
    if (!this.#broken && this.#partBytes === this.#frameBytes) {
      this.#part = undefined;
      this.#partBytes = 0;
      this.#deliver(part, 0, this.#frameBytes);
    }
    return bytes;
  }

  #keep(chunk: Buffer, at: number, bytes: number): Buffer {
    const needed = this.#partBytes + bytes;
    let part = this.#part;
    if (part === undefined || part.length < needed) {
      const room = Math.max(needed, 2 * (part?.length ?? 0), FIRST_PARTS_BYTES);
      const grown = Buffer.allocUnsafeSlow(
        this.#frameBytes === 0 ? PREFIX_BYTES : Math.min(room, this.#frameBytes),
      );
      part?.copy(grown, 0, 0, this.#partBytes);
      part = grown;
      this.#part = part;
    }
    chunk.copy(part, this.#partBytes, at, at + bytes);
    this.#partBytes = needed;
    if (bytes === chunk.length) {
      giveBack(chunk);
    }
    return part;
  }

  /** The size of the frame that begins at `at`, as soon as its prefix is there; 0 before. */
  #sizeOf(buffer: Buffer, at: number, bytes: number): number {
    if (bytes < LENGTH_BYTES) {
      return 0;
    }
    const { maxBytes, maxHeaderBytes = maxBytes } = this.#options;
    const length = buffer.readUInt32LE(at);
    if (length > maxBytes) {
      return this.#break(`it sent a message of ${length} bytes; the limit is ${maxBytes}`);
    }
    if (length < PREFIX_BYTES - LENGTH_BYTES) {
      return this.#break(`it sent a message of ${length} bytes, which has no room for a header`);
    }
    if (bytes < PREFIX_BYTES) {
      return 0;
    }
    if (buffer[at + LENGTH_BYTES] !== FORMAT) {
      return this.#break("it sent a message in a format that the protocol does not have");
    }
    const headerBytes = buffer.readUInt32LE(at + LENGTH_BYTES + 1);
    if (headerBytes > maxHeaderBytes) {
      return this.#break(
        `it sent a message with a header of ${headerBytes} bytes; the limit is ${maxHeaderBytes}`,
      );
    }
    if (headerBytes > length - (PREFIX_BYTES - LENGTH_BYTES)) {
      return this.#break("it sent a message with a header that is longer than the message");
    }
    return LENGTH_BYTES + length;
  }

  #deliver(frame: Buffer, at: number, frameBytes: number): void {
    const headerAt = at + PREFIX_BYTES;
    const begin = headerAt + frame.readUInt32LE(headerAt - LENGTH_BYTES);
    let header: unknown;
    try {
      header = parse(frame.toString("utf8", headerAt, begin));
    } catch (err) {
      this.#break(`it sent a message that cannot be read: ${String(err)}`);
      return;
    }
    const { maxAttachments = Number.POSITIVE_INFINITY } = this.#options;
    const place = { begin, end: at + frameBytes };
    this.#options.onMessage(header, new Attachments(frame, place, maxAttachments));
  }

  #break(reason: string): 0 {
    this.end();
    this.#options.onBroken(reason);
    return 0;
  }
}
