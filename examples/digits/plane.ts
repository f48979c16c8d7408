/** One number per pixel, rows from the top. */
export interface Plane {
  readonly width: number;
  readonly height: number;
  readonly values: Float32Array;
}

/** A part of an image, in pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The part of a plane inside a box. */
export function crop(plane: Plane, box: Box): Plane {
  const values = new Float32Array(box.width * box.height);
  for (let y = 0; y < box.height; y++) {
    const from = (box.top + y) * plane.width + box.left;
    values.set(plane.values.subarray(from, from + box.width), y * box.width);
  }
  return { width: box.width, height: box.height, values };
}

/**
 * Scales a plane with a tent filter: linear interpolation when it grows, a
 * weighted mean over everything that falls on a pixel when it shrinks, so that
 * thin lines fade rather than break.
 */
export function resize(plane: Plane, width: number, height: number): Plane {
  const wide = resizeRows(plane, width);
  return transpose(resizeRows(transpose(wide), height));
}

function resizeRows(plane: Plane, width: number): Plane {
  const { height } = plane;
  const values = new Float32Array(width * height);
  for (let x = 0; x < width; x++) {
    const { first, weights } = tent(plane.width, width, x);
    for (let y = 0; y < height; y++) {
      let sum = 0;
      for (let i = 0; i < weights.length; i++) {
        sum += weights[i]! * plane.values[y * plane.width + first + i]!;
      }
      values[y * width + x] = sum;
    }
  }
  return { width, height, values };
}

/** Which pixels of a row make up pixel `x` of a row of another length, and by how much. */
function tent(from: number, to: number, x: number): { first: number; weights: number[] } {
  const ratio = from / to;
  const radius = Math.max(1, ratio);
  const centre = (x + 0.5) * ratio - 0.5;
  const first = Math.max(0, Math.ceil(centre - radius));
  const last = Math.min(from - 1, Math.floor(centre + radius));
  const heights = Array.from({ length: last - first + 1 }, (_, i) =>
    Math.max(0, radius - Math.abs(first + i - centre)),
  );
  const sum = heights.reduce((total, height) => total + height, 0);
  return { first, weights: heights.map((height) => height / sum) };
}

function transpose(plane: Plane): Plane {
  const { width, height } = plane;
  const values = new Float32Array(width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      values[x * height + y] = plane.values[y * width + x]!;
    }
  }
  return { width: height, height: width, values };
}
