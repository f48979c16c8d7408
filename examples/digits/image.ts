/**
 * PNG decoding and encoding. Files are untrusted, so the memory that decoding
 * takes is bounded beforehand: the dimensions are read from the header, and the
 * data of an interlaced file, which pngjs inflates without a limit, is first
 * inflated under one.
 */
import { inflateSync } from "node:zlib";
import { PNG } from "pngjs";

/** Width and height that an image may have, in pixels. */
export const MAX_SIDE = 4096;

const SIGNATURE = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
/** Signature, then the header chunk: length, name, 13 bytes of data, checksum. */
const HEADER_END = 33;
const INTERLACE_AT = 28;
/** The most that PNG uses for a pixel: four channels of 16 bits. */
const MAX_PIXEL_BYTES = 8;
/** Adam7 cuts an image into seven; each row of each begins with a filter byte. */
const INTERLACE_PASSES = 7;

/** A decoded image. */
export interface Image {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue, alpha from 0 to 255 for each pixel, rows from the top. */
  readonly data: Uint8Array;
}

/** Thrown for a file that is not a readable image; the message names the file. */
export class UnreadableImage extends Error {
  override readonly name = "UnreadableImage";
}

/**
 * Decodes a PNG file of any colour type and depth.
 *
 * @param name What messages call the file.
 * @throws UnreadableImage when it is not a PNG file, damaged or too large.
 */
export function decodePng(file: Uint8Array, name: string): Image {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (!bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE)) {
    throw new UnreadableImage(`${name} is not a PNG file; convert it to PNG`);
  }
  if (bytes.length < HEADER_END || bytes.toString("latin1", 12, 16) !== "IHDR") {
    throw new UnreadableImage(`${name} is damaged: its header is incomplete`);
  }
  const width = bytes.readUInt32BE(16);
  const height = bytes.readUInt32BE(20);
  if (width === 0 || height === 0 || width > MAX_SIDE || height > MAX_SIDE) {
    const limit = `1×1 to ${MAX_SIDE}×${MAX_SIDE}`;
    throw new UnreadableImage(`${name} has ${width}×${height} pixels; ${limit} are possible`);
  }
  try {
    if (bytes[INTERLACE_AT] !== 0) {
      const maxOutputLength = height * (width * MAX_PIXEL_BYTES + INTERLACE_PASSES);
      inflateSync(imageData(bytes), { maxOutputLength });
    }
    return PNG.sync.read(bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UnreadableImage(`${name} is damaged: ${reason}`, { cause });
  }
}

/** Encodes an image as a PNG file. */
export function encodePng(image: Image): Uint8Array {
  const png = new PNG({ width: image.width, height: image.height });
  png.data.set(image.data);
  return PNG.sync.write(png, { colorType: 2 });
}

/** The compressed pixels: what all IDAT chunks hold, one after another. */
function imageData(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = SIGNATURE.length;
  while (at + 8 <= bytes.length) {
    const length = bytes.readUInt32BE(at);
    if (bytes.toString("latin1", at + 4, at + 8) === "IDAT") {
      parts.push(bytes.subarray(at + 8, at + 8 + length));
    }
    at += length + 12;
  }
  return Buffer.concat(parts);
}
