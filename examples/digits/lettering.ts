/**
 * Figures drawn with a round pen. A glyph is a list of strokes, a stroke a list
 * of points joined by straight lines, in units of the height of a figure: x to
 * the right, y down, 0 at the top of the figure and 1 on the baseline. Drawn
 * this way they are smooth at every size.
 */
import type { Canvas, Colour } from "./canvas.ts";

type Point = readonly [x: number, y: number];
type Stroke = readonly Point[];

interface Glyph {
  readonly width: number;
  readonly strokes: readonly Stroke[];
}

/** How text is set. */
export interface Lettering {
  readonly left: number;
  /** The line that figures stand on. */
  readonly baseline: number;
  /** Height of a figure in pixels. */
  readonly height: number;
  /** Width of the pen in pixels. */
  readonly pen: number;
  readonly colour: Colour;
}

const SPACING = 0.24;
const DEGREES_PER_POINT = 10;

/** Part of an ellipse; degrees from 0 at the right over 90 at the bottom. */
function arc(centre: Point, radii: Point, from: number, to: number): Point[] {
  const steps = Math.ceil((to - from) / DEGREES_PER_POINT);
  return Array.from({ length: steps + 1 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / steps) * Math.PI) / 180;
    return [centre[0] + radii[0] * Math.cos(angle), centre[1] + radii[1] * Math.sin(angle)];
  });
}

const SIX: readonly Stroke[] = [
  arc([0.3, 0.69], [0.28, 0.31], 0, 360),
  arc([0.5, 0.69], [0.48, 0.69], 180, 262),
];
const NINE = SIX.map((stroke) => stroke.map(([x, y]): Point => [0.6 - x, 1 - y]));

const GLYPHS: { readonly [character: string]: Glyph } = {
  "0": { width: 0.6, strokes: [arc([0.3, 0.5], [0.29, 0.5], 0, 360)] },
  "1": {
    width: 0.44,
    strokes: [
      [
        [0.04, 0.2],
        [0.3, 0],
        [0.3, 1],
      ],
    ],
  },
  "2": {
    width: 0.6,
    strokes: [[...arc([0.3, 0.29], [0.27, 0.29], 190, 400), [0.03, 1], [0.58, 1]]],
  },
  "3": {
    width: 0.6,
    strokes: [
      [
        ...arc([0.28, 0.25], [0.24, 0.25], 205, 450),
        ...arc([0.28, 0.745], [0.29, 0.255], 270, 520),
      ],
    ],
  },
  "4": {
    width: 0.62,
    strokes: [
      [
        [0.46, 1],
        [0.46, 0],
        [0.02, 0.72],
        [0.62, 0.72],
      ],
    ],
  },
  "5": {
    width: 0.6,
    strokes: [[[0.52, 0], [0.11, 0], [0.07, 0.45], ...arc([0.29, 0.67], [0.29, 0.33], 222, 505)]],
  },
  "6": { width: 0.6, strokes: SIX },
  "7": {
    width: 0.58,
    strokes: [
      [
        [0.02, 0],
        [0.56, 0],
        [0.2, 1],
      ],
    ],
  },
  "8": {
    width: 0.6,
    strokes: [arc([0.3, 0.245], [0.24, 0.245], 0, 360), arc([0.3, 0.745], [0.28, 0.255], 0, 360)],
  },
  "9": { width: 0.6, strokes: NINE },
  ".": { width: 0.06, strokes: [[[0.03, 1]]] },
  " ": { width: 0.02, strokes: [] },
  "%": {
    width: 0.92,
    strokes: [
      arc([0.19, 0.22], [0.17, 0.21], 0, 360),
      arc([0.73, 0.78], [0.17, 0.21], 0, 360),
      [
        [0.74, 0.02],
        [0.18, 0.98],
      ],
    ],
  },
};

/** Writes figures, points, spaces and percent signs. */
export function write(canvas: Canvas, text: string, lettering: Lettering): void {
  let left = lettering.left;
  for (const glyph of glyphsOf(text)) {
    for (const stroke of glyph.strokes) {
      draw(canvas, stroke, { ...lettering, left });
    }
    left += (glyph.width + SPACING) * lettering.height;
  }
}

/** How wide a text is in pixels, from the middle of the pen to the middle of the pen. */
export function widthOf(text: string, height: number): number {
  const widths = glyphsOf(text).map((glyph) => glyph.width);
  return height * (widths.reduce((sum, width) => sum + width + SPACING, 0) - SPACING);
}

function glyphsOf(text: string): Glyph[] {
  return [...text].map((character) => {
    const glyph = GLYPHS[character];
    if (glyph === undefined) {
      throw new RangeError(`there is no glyph for ${JSON.stringify(character)}`);
    }
    return glyph;
  });
}

/** Covers every pixel by how far it lies within half a pen of the stroke. */
function draw(canvas: Canvas, stroke: Stroke, lettering: Lettering): void {
  const { left, baseline, height, pen, colour } = lettering;
  const points = stroke.map(([x, y]): Point => [left + x * height, baseline + (y - 1) * height]);
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  for (let y = Math.floor(Math.min(...ys) - pen); y <= Math.max(...ys) + pen; y++) {
    for (let x = Math.floor(Math.min(...xs) - pen); x <= Math.max(...xs) + pen; x++) {
      const distance = distanceTo(points, [x + 0.5, y + 0.5]);
      canvas.blend(x, y, { colour, cover: Math.min(1, pen / 2 + 0.5 - distance) });
    }
  }
}

/** From a point to the nearest point of the stroke. */
function distanceTo(points: readonly Point[], [x, y]: Point): number {
  let nearest = Number.POSITIVE_INFINITY;
  for (const [i, [toX, toY]] of points.entries()) {
    const [fromX, fromY] = points[i - 1] ?? [toX, toY];
    const [alongX, alongY] = [toX - fromX, toY - fromY];
    const square = alongX ** 2 + alongY ** 2 || 1;
    const share = ((x - fromX) * alongX + (y - fromY) * alongY) / square;
    const part = Math.min(1, Math.max(0, share));
    nearest = Math.min(nearest, Math.hypot(x - fromX - part * alongX, y - fromY - part * alongY));
  }
  return nearest;
}
