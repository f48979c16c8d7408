import type { Image } from "./image.ts";
import { type Plane, resize } from "./plane.ts";

/** An image scaled so that its longer side has the given length, transparent parts laid on white. */
export function thumbnail(image: Image, side: number): Image {
  const scale = side / Math.max(image.width, image.height);
  const width = Math.max(1, Math.round(image.width * scale));
  const height = Math.max(1, Math.round(image.height * scale));
  const data = new Uint8Array(4 * width * height).fill(255);
  for (const which of [0, 1, 2]) {
    const { values } = resize(channelOnWhite(image, which), width, height);
    for (const [i, value] of values.entries()) {
      data[4 * i + which] = Math.round(value);
    }
  }
  return { width, height, data };
}

function channelOnWhite({ width, height, data }: Image, which: number): Plane {
  const values = new Float32Array(width * height);
  for (let i = 0; i < values.length; i++) {
    const alpha = data[4 * i + 3]! / 255;
    values[i] = alpha * data[4 * i + which]! + (1 - alpha) * 255;
  }
  return { width, height, values };
}
