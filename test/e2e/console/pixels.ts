import { PNG } from "pngjs";

/** A PNG of 240 by 160 pixels, a soft gradient. */
export function gradientPng(): Buffer {
  const png = new PNG({ width: 240, height: 160 });
  for (let y = 0; y < png.height; y += 1) {
    for (let x = 0; x < png.width; x += 1) {
      png.data.set([80 + x / 2, 90 + y / 2, 160 - x / 4, 255], (y * png.width + x) * 4);
    }
  }
  return PNG.sync.write(png);
}
