/**
 * Attachments: the bytes of a frame behind its header. A header names them as
 * `{"$": [offset, length]}`, counted from the first byte after the header. They
 * stand one after the other in the order in which the message has them, so each
 * byte is named exactly once: nothing overlaps and nothing is left over.
 */
import { textBetween } from "../collections/bytes.ts";

/** Stands in a header for bytes among the attachments. */
export interface Reference {
  readonly $: readonly [offset: number, length: number];
}

/** Collects the attachments of a frame that is being written. */
export class OutgoingAttachments {
  readonly #parts: (string | Uint8Array)[] = [];
  #bytes = 0;

  /** The size of all, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes, or a text as UTF-8. */
  add(part: string | Uint8Array): Reference {
    const offset = this.#bytes;
    const length = typeof part === "string" ? Buffer.byteLength(part) : part.byteLength;
    this.#parts.push(part);
    this.#bytes += length;
    return { $: [offset, length] };
  }

  writeTo(frame: Buffer, begin: number): void {
    let at = begin;
    for (const part of this.#parts) {
      if (typeof part === "string") {
        at += frame.write(part, at);
      } else {
        frame.set(part, at);
        at += part.byteLength;
      }
    }
  }
}

/**
 * Reads the attachments of a frame that may be forged. They are taken in their
 * order; the first reference that breaks a rule is the `fault`, and nothing is
 * taken after it. Bytes are views of the frame: copy what is kept.
 */
export class Attachments {
  readonly #frame: Buffer;
  readonly #begin: number;
  readonly #bytes: number;
  /** How many more may be named. */
  #left: number;
  /** Where the next one begins. */
  #next = 0;
  #fault: string | undefined;

  constructor(frame: Buffer, place: { begin: number; end: number }, max: number) {
    this.#frame = frame;
    this.#begin = place.begin;
    this.#bytes = place.end - place.begin;
    this.#left = max;
  }

  /** What is wrong with the references, once the whole message was read. */
  get fault(): string | undefined {
    if (this.#fault === undefined && this.#next < this.#bytes) {
      return `it sent ${this.#bytes - this.#next} bytes of attachments that its message does not name`;
    }
    return this.#fault;
  }

  /** The named bytes; undefined for anything but a valid reference to the next ones. */
  take(reference: unknown, maxBytes = Number.POSITIVE_INFINITY): Buffer | undefined {
    const [offset, length] = spanOf(reference);
    if (offset === undefined || length === undefined || this.#fault !== undefined) {
      return undefined;
    }
    this.#fault = this.#faultOf(offset, length, maxBytes);
    if (this.#fault !== undefined) {
      return undefined;
    }
    const begin = this.#begin + offset;
    this.#next = offset + length;
    return this.#frame.subarray(begin, begin + length);
  }

  /** A text, which stands in the header itself or is named there. */
  text(value: unknown, maxBytes?: number): string | undefined {
    if (typeof value === "string") {
      return value;
    }
    const bytes = this.take(value, maxBytes);
    return bytes && textBetween(bytes, 0, bytes.length);
  }

  #faultOf(offset: number, length: number, maxBytes: number): string | undefined {
    if (offset + length > this.#bytes) {
      return `it named bytes ${offset} to ${offset + length} of its attachments, which have ${this.#bytes}`;
    }
    if (offset !== this.#next) {
      return `it named an attachment at ${offset}, and the next one begins at ${this.#next}`;
    }
    if (length > maxBytes) {
      return `it sent an attachment of ${length} bytes where at most ${maxBytes} may be`;
    }
    this.#left -= 1;
    return this.#left < 0 ? "it named too many attachments" : undefined;
  }
}

function spanOf(value: unknown): readonly [offset?: number, length?: number] {
  if (typeof value !== "object" || value === null || !("$" in value)) {
    return [];
  }
  const { $: span } = value;
  return Array.isArray(span) && span.length === 2 && span.every(isPosition)
    ? [span[0] as number, span[1] as number]
    : [];
}

function isPosition(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
