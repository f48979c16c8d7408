/** A raster canvas with anti-aliased shapes. */
import type { Image } from "./image.ts";

/** Red, green and blue from 0 to 255. */
export type Colour = readonly [number, number, number];

/** A rectangle with rounded corners, in pixels. */
export interface Panel {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly radius: number;
}

/** An opaque image to draw on, with smooth edges. */
export class Canvas implements Image {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;

  constructor(width: number, height: number, background: Colour) {
    this.width = width;
    this.height = height;
    this.data = new Uint8Array(4 * width * height);
    const pixel = Uint8Array.of(...background, 255);
    for (let i = 0; i < this.data.length; i++) {
      this.data[i] = pixel[i % 4]!;
    }
  }

  /** Blends a colour into one pixel; `cover` is the covered share. */
  blend(x: number, y: number, { colour, cover }: { colour: Colour; cover: number }): void {
    if (cover > 0 && x >= 0 && y >= 0 && x < this.width && y < this.height) {
      const at = 4 * (y * this.width + x);
      for (let i = 0; i < 3; i++) {
        this.data[at + i] = Math.round((1 - cover) * this.data[at + i]! + cover * colour[i]!);
      }
    }
  }

  /** Fills a panel. Each pixel is covered by how far it lies inside the edge. */
  fill(panel: Panel, colour: Colour): void {
    const { left, top, width, height, radius } = panel;
    for (let y = 0; y < height; y++) {
      const overY = Math.max(0, Math.abs(y + 0.5 - height / 2) - (height / 2 - radius));
      for (let x = 0; x < width; x++) {
        const overX = Math.max(0, Math.abs(x + 0.5 - width / 2) - (width / 2 - radius));
        const cover = Math.min(1, radius + 0.5 - Math.hypot(overX, overY));
        this.blend(left + x, top + y, { colour, cover });
      }
    }
  }

  /** Copies an opaque image. It must lie within the canvas. */
  paste(image: Image, left: number, top: number): void {
    for (let y = 0; y < image.height; y++) {
      const row = image.data.subarray(4 * y * image.width, 4 * (y + 1) * image.width);
      this.data.set(row, 4 * ((top + y) * this.width + left));
    }
  }
}
