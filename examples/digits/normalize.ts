/**
 * Makes any picture of a digit look like one of MNIST's, as described by LeCun
 * et al. (1998): the digit scaled to fit 20×20 pixels with its proportions
 * kept, grey where the scaling blurs it, and placed in 28×28 so that its centre
 * of mass is in the middle.
 *
 * What is ink follows from the border of the picture: the median colour there
 * is the paper, and a pixel is ink as far as its colour is from that. So dark
 * on light, light on dark and colour on colour are all the same.
 */
import { type Image, UnreadableImage } from "./image.ts";
import { SIDE } from "./network.ts";
import { type Box, crop, type Plane, resize } from "./plane.ts";

/** The longer side of a digit in MNIST, in pixels. */
const DIGIT_SIDE = 20;
/** Distance of colours, of 441 between black and white, below which there is no ink. */
const MIN_CONTRAST = 32;
/** Share of the darkest ink below which a pixel counts as paper: noise, traces of compression. */
const NOISE_SHARE = 0.12;
const WHITE = 255;
const BLACK = 0;

/**
 * The digit of a picture as the network wants it: 28×28 values from 0 (paper)
 * to 1 (ink).
 *
 * @param name What messages call the picture.
 * @throws UnreadableImage when the picture is blank.
 */
export function normalize(image: Image, name: string): Float32Array {
  const ink = inkOf(image, WHITE) ?? inkOf(image, BLACK);
  if (ink === undefined) {
    throw new UnreadableImage(`${name} is blank: there is no digit in it`);
  }
  const digit = crop(ink, boxOf(ink));
  const scale = DIGIT_SIDE / Math.max(digit.width, digit.height);
  const width = Math.max(1, Math.round(digit.width * scale));
  const height = Math.max(1, Math.round(digit.height * scale));
  return centre(resize(digit, width, height));
}

/**
 * How much ink is in each pixel, from 0 to 1, with transparent parts laid on a
 * ground of the given brightness; undefined when there is none.
 */
function inkOf(image: Image, ground: number): Plane | undefined {
  const { width, height } = image;
  const [red, green, blue] = paperOf(image, ground);
  const values = new Float32Array(width * height);
  let strongest = 0;
  for (let i = 0; i < values.length; i++) {
    const distance = Math.hypot(
      channel(image, i, 0, ground) - red,
      channel(image, i, 1, ground) - green,
      channel(image, i, 2, ground) - blue,
    );
    values[i] = distance;
    strongest = Math.max(strongest, distance);
  }
  if (strongest < MIN_CONTRAST) {
    return undefined;
  }
  const noise = NOISE_SHARE * strongest;
  for (let i = 0; i < values.length; i++) {
    values[i] = values[i]! <= noise ? 0 : values[i]! / strongest;
  }
  return { width, height, values };
}

/** The median red, green and blue along the border. */
function paperOf(image: Image, ground: number): [number, number, number] {
  const { width, height } = image;
  const border: number[] = [];
  for (let x = 0; x < width; x++) {
    border.push(x, (height - 1) * width + x);
  }
  for (let y = 1; y < height - 1; y++) {
    border.push(y * width, y * width + width - 1);
  }
  const median = (which: number) =>
    border.map((i) => channel(image, i, which, ground)).sort((a, b) => a - b)[border.length >> 1]!;
  return [median(0), median(1), median(2)];
}

/** One channel of a pixel, laid on the ground as far as the pixel is transparent. */
function channel(image: Image, pixel: number, which: number, ground: number): number {
  const alpha = image.data[4 * pixel + 3]! / 255;
  return alpha * image.data[4 * pixel + which]! + (1 - alpha) * ground;
}

/** The smallest box around all ink. */
function boxOf(ink: Plane): Box {
  let [left, top, right, bottom] = [ink.width, ink.height, -1, -1];
  for (let y = 0; y < ink.height; y++) {
    for (let x = 0; x < ink.width; x++) {
      if (ink.values[y * ink.width + x]! > 0) {
        left = Math.min(left, x);
        right = Math.max(right, x);
        top = Math.min(top, y);
        bottom = y;
      }
    }
  }
  return { left, top, width: right - left + 1, height: bottom - top + 1 };
}

/** Puts a digit into 28×28 by its centre of mass, its strongest ink at 1. */
function centre(digit: Plane): Float32Array {
  const { width, height, values } = digit;
  let [mass, massX, massY, strongest] = [0, 0, 0, 0];
  for (const [i, value] of values.entries()) {
    mass += value;
    massX += value * ((i % width) + 0.5);
    massY += value * (Math.floor(i / width) + 0.5);
    strongest = Math.max(strongest, value);
  }
  const left = place(massX / mass, width);
  const top = place(massY / mass, height);
  const pixels = new Float32Array(SIDE * SIDE);
  for (const [i, value] of values.entries()) {
    const at = (top + Math.floor(i / width)) * SIDE + left + (i % width);
    pixels[at] = value / strongest;
  }
  return pixels;
}

/** Where a digit begins when its centre of mass is to be on pixel 14, counted from 0, as in MNIST. */
function place(centreOfMass: number, length: number): number {
  const middle = SIDE / 2 + 0.5;
  return Math.min(SIDE - length, Math.max(0, Math.round(middle - centreOfMass)));
}
