/** Bytes: those of bodies and of long texts, and random ones as digits. */
import { isAscii } from "node:buffer";
import { randomBytes } from "node:crypto";

/** Length from which a text is looked at before it is decoded. */
const LONG_TEXT_BYTES = 65_536;

/** Shorter bytes are not worth giving back, and may share their memory with others. */
const MIN_GIVEN_BACK_BYTES = 16_384;

/** Whether bytes are worth giving back. */
export function isLong({ byteLength }: Uint8Array): boolean {
  return byteLength >= MIN_GIVEN_BACK_BYTES;
}

/**
 * Gives back the memory of bytes at once, which are empty from then on. Left to the collector, a
 * few megabytes of bodies that have passed make V8 collect everything, because it counts what
 * buffers hold as growth of its own; one collection of a node takes longer than ten such bodies.
 *
 * Nobody may need the bytes, and nothing of the system may still read them: a write of them has
 * called back. Bytes that are a part of something else are left alone.
 */
export function giveBack(bytes: Uint8Array): void {
  const { buffer, byteLength } = bytes;
  if (isLong(bytes) && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) {
    buffer.transfer(0);
  }
}

/** The text between two places of a text in bytes. */
export function textBetween(text: Uint8Array, start: number, end: number): string {
  const { buffer, byteOffset, byteLength } = text;
  const part = Buffer.from(buffer, byteOffset + start, Math.min(end, byteLength) - start);
  // Ten times as fast as UTF-8, which for long texts is worth the look.
  return part.length > LONG_TEXT_BYTES && isAscii(part) ? part.toString("latin1") : part.toString();
}

/** All bytes of a stream; undefined, without its rest, where they are more than `maxBytes`. */
export async function readAtMost(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > maxBytes) {
      return undefined;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Random texts drawn at once: one by one they would cost a tenth of a submit. */
const MAX_TEXTS_PER_DRAW = 512;

/**
 * Returns a source of random texts with `length` hexadecimal digits each.
 *
 * @param finish transforms the digits of a whole draw before they are cut into texts.
 */
export function createDigitSource(
  length: number,
  finish = (digits: string): string => digits,
): () => string {
  let digits = "";
  let used = 0;
  return () => {
    if (used === digits.length) {
      digits = finish(randomBytes((MAX_TEXTS_PER_DRAW * length) / 2).toString("hex"));
      used = 0;
    }
    used += length;
    return digits.slice(used - length, used);
  };
}
