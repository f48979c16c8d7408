/** Data augmentation for handwritten digits. */
import { SIDE } from "../network.ts";
import type { Random } from "./random.ts";

const MAX_ROTATION = (12 * Math.PI) / 180;
const MAX_SHEAR = 0.2;
const MAX_SCALING = 0.15;
const MAX_SHIFT = 1.5;
const THICKENED_SHARE = 0.15;
const THINNED_SHARE = 0.15;

/**
 * Another writer's hand: the digit slightly rotated, slanted, stretched,
 * moved, sometimes with a thicker or thinner pen.
 */
export function augment(pixels: Float32Array, random: Random): Float32Array {
  const pen = random.next();
  if (pen < THICKENED_SHARE) {
    return distort(redraw(pixels, Math.max), random);
  }
  if (pen < THICKENED_SHARE + THINNED_SHARE) {
    return distort(redraw(pixels, Math.min), random);
  }
  return distort(pixels, random);
}

/** A random affine map about the centre. */
function distort(pixels: Float32Array, random: Random): Float32Array {
  const angle = random.between(-MAX_ROTATION, MAX_ROTATION);
  const shear = random.between(-MAX_SHEAR, MAX_SHEAR);
  const width = 1 + random.between(-MAX_SCALING, MAX_SCALING);
  const height = 1 + random.between(-MAX_SCALING, MAX_SCALING);
  const shiftX = random.between(-MAX_SHIFT, MAX_SHIFT);
  const shiftY = random.between(-MAX_SHIFT, MAX_SHIFT);
  const xFromX = Math.cos(angle) / width;
  const xFromY = (Math.sin(angle) + shear) / height;
  const yFromX = -Math.sin(angle) / width;
  const yFromY = Math.cos(angle) / height;
  const centre = (SIDE - 1) / 2;
  return Float32Array.from(pixels, (_, i) => {
    const x = (i % SIDE) - centre - shiftX;
    const y = Math.floor(i / SIDE) - centre - shiftY;
    return sample(pixels, xFromX * x + xFromY * y + centre, yFromX * x + yFromY * y + centre);
  });
}

/** The value between four pixels, paper outside the image. */
function sample(pixels: Float32Array, x: number, y: number): number {
  const left = Math.floor(x);
  const top = Math.floor(y);
  const right = x - left;
  const below = y - top;
  const upper = (1 - right) * pixel(pixels, left, top) + right * pixel(pixels, left + 1, top);
  const lower =
    (1 - right) * pixel(pixels, left, top + 1) + right * pixel(pixels, left + 1, top + 1);
  return (1 - below) * upper + below * lower;
}

function pixel(pixels: Float32Array, x: number, y: number): number {
  return x < 0 || y < 0 || x >= SIDE || y >= SIDE ? 0 : pixels[y * SIDE + x]!;
}

/** Half way to each pixel's extreme neighbour: a pen thicker or thinner by about a pixel. */
function redraw(pixels: Float32Array, extreme: (...values: number[]) => number): Float32Array {
  return pixels.map((value, i) => {
    const x = i % SIDE;
    const y = Math.floor(i / SIDE);
    const horizontal = extreme(pixel(pixels, x - 1, y), value, pixel(pixels, x + 1, y));
    const vertical = extreme(pixel(pixels, x, y - 1), value, pixel(pixels, x, y + 1));
    return (value + extreme(horizontal, vertical)) / 2;
  });
}
