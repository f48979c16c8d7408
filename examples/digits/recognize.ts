/** Recognition of one PNG file: decode, normalize, predict. */
import { readFileSync } from "node:fs";
import { decodePng, type Image } from "./image.ts";
import { type Prediction, predict } from "./network.ts";
import { normalize } from "./normalize.ts";
import { readWeights } from "./weights.ts";

const weights = readWeights(readFileSync(new URL("./weights.bin", import.meta.url)));

/** An image and what the network says of it. */
export interface Recognized extends Prediction {
  readonly image: Image;
}

/**
 * Reads the digit in a PNG file.
 *
 * @param name What messages call the file.
 * @throws UnreadableImage when the file is not a PNG file, damaged, too large
 * or blank.
 */
export function recognize(file: Uint8Array, name: string): Recognized {
  const image = decodePng(file, name);
  return { image, ...predict(weights, normalize(image, name)) };
}
