/**
 * The file of trained parameters, all numbers little-endian:
 *
 *     offset  bytes  meaning
 *          0      4  "DGT1"
 *          4      4  number of parameters n, unsigned
 *          8      4  CRC-32 of what follows
 *         12    4 n  parameters as 32-bit floats, layer after layer
 */
import { crc32 } from "node:zlib";
import { PARAMETER_LENGTH } from "./network.ts";

const MAGIC = "DGT1";
const HEADER_BYTES = 12;
const PARAMETER_BYTES = 4;

/**
 * Reads a file of parameters.
 *
 * @throws Error when it is not such a file, is damaged, or belongs to a
 * network of another shape.
 */
export function readWeights(file: Uint8Array): Float32Array {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < HEADER_BYTES || Buffer.from(file.subarray(0, 4)).toString("latin1") !== MAGIC) {
    throw new Error("not a file of weights; make one with train.ts");
  }
  const length = view.getUint32(4, true);
  if (length !== PARAMETER_LENGTH || file.length !== HEADER_BYTES + PARAMETER_BYTES * length) {
    throw new Error("the weights belong to another network; train it again with train.ts");
  }
  if (crc32(file.subarray(HEADER_BYTES)) !== view.getUint32(8, true)) {
    throw new Error("the file of weights is damaged; restore it or train again with train.ts");
  }
  return Float32Array.from({ length }, (_, i) =>
    view.getFloat32(HEADER_BYTES + PARAMETER_BYTES * i, true),
  );
}

/** Writes parameters as a file that `readWeights` reads. */
export function writeWeights(parameters: Float32Array): Uint8Array {
  const file = Buffer.alloc(HEADER_BYTES + PARAMETER_BYTES * parameters.length);
  file.write(MAGIC, "latin1");
  file.writeUInt32LE(parameters.length, 4);
  for (const [i, parameter] of parameters.entries()) {
    file.writeFloatLE(parameter, HEADER_BYTES + PARAMETER_BYTES * i);
  }
  file.writeUInt32LE(crc32(file.subarray(HEADER_BYTES)), 8);
  return file;
}
