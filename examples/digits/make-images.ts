/**
 * Writes the pictures in `images/`: digits that the network was not trained
 * on, each drawn the way a picture might come in. The first two held-out
 * samples of each digit as they come, then a few hard ones: of those that the
 * network is least sure of, the first that it still gets right when drawn.
 * Needs what `train.ts` needs.
 *
 *     node examples/digits/make-images.ts
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { PNG } from "pngjs";
import type { Colour } from "./canvas.ts";
import { predict, SIDE } from "./network.ts";
import { type Plane, resize } from "./plane.ts";
import { recognize } from "./recognize.ts";
import { readDataset, type Sample } from "./training/dataset.ts";
import { Random } from "./training/random.ts";
import { readWeights } from "./weights.ts";

interface Style {
  /** Size of the digit's square in pixels. */
  readonly side: number;
  /** Paper around the square: left, top, right, bottom. */
  readonly margins: readonly [number, number, number, number];
  readonly ink: Colour;
  /** Absent: transparent. */
  readonly paper?: Colour;
  /** Brightness by which pixels vary at random. */
  readonly noise?: number;
}

const STYLES: readonly Style[] = [
  { side: 28, margins: [0, 0, 0, 0], ink: [255, 255, 255], paper: [0, 0, 0] },
  { side: 140, margins: [10, 10, 10, 10], ink: [20, 20, 20], paper: [255, 255, 255] },
  { side: 160, margins: [20, 40, 20, 0], ink: [24, 64, 160], paper: [250, 244, 228] },
  { side: 84, margins: [40, 10, 5, 30], ink: [245, 245, 235], paper: [28, 74, 56], noise: 14 },
  { side: 128, margins: [0, 0, 0, 0], ink: [0, 0, 0] },
  { side: 240, margins: [0, 0, 0, 0], ink: [190, 30, 45], paper: [255, 255, 255] },
  { side: 60, margins: [100, 24, 10, 50], ink: [70, 70, 75], paper: [225, 224, 220], noise: 12 },
  { side: 64, margins: [4, 4, 4, 4], ink: [255, 212, 64], paper: [60, 30, 100] },
];
const SUFFIXES = "abcdefgh";
const HARD_COUNT = 4;

const random = new Random(28);
const { heldOut } = readDataset();
const weights = readWeights(readFileSync(new URL("weights.bin", import.meta.url)));
const folder = new URL("images/", import.meta.url);
mkdirSync(folder, { recursive: true });

const written: number[] = [];
for (const count of [1, 2]) {
  for (let digit = 0; digit < 10; digit++) {
    const sample = heldOut.filter((candidate) => candidate.digit === digit)[count - 1]!;
    add(digit, draw(sample, nextStyle()));
  }
}
for (const sample of bySureness(heldOut)) {
  const file = draw(sample, nextStyle());
  if (written.length < 20 + HARD_COUNT && recognize(file, "drawn").digit === sample.digit) {
    add(sample.digit, file);
  }
}

function bySureness(samples: readonly Sample[]): Sample[] {
  return samples
    .map((sample) => ({ sample, ...predict(weights, sample.pixels) }))
    .filter(({ sample, digit }) => digit === sample.digit)
    .sort((a, b) => a.confidence - b.confidence)
    .slice(0, 4 * HARD_COUNT)
    .map(({ sample }) => sample);
}

function nextStyle(): Style {
  return STYLES[written.length % STYLES.length]!;
}

function add(digit: number, file: Buffer): void {
  const suffix = SUFFIXES[written.filter((other) => other === digit).length];
  writeFileSync(new URL(`${digit}-${suffix}.png`, folder), file);
  written.push(digit);
}

function draw(sample: Sample, style: Style): Buffer {
  const { side, margins, ink, paper, noise = 0 } = style;
  const [left, top, right, bottom] = margins;
  const digit: Plane = { width: SIDE, height: SIDE, values: sample.pixels };
  const { values } = resize(digit, side, side);
  const png = new PNG({ width: left + side + right, height: top + side + bottom });
  for (let i = 0; i < png.width * png.height; i++) {
    const x = (i % png.width) - left;
    const y = Math.floor(i / png.width) - top;
    const inside = x >= 0 && y >= 0 && x < side && y < side;
    const cover = inside ? values[y * side + x]! : 0;
    const shade = random.between(-noise, noise);
    const colour = ink.map((value, c) =>
      paper === undefined ? value : cover * value + (1 - cover) * paper[c]! + shade,
    );
    const alpha = paper === undefined ? 255 * cover : 255;
    const bytes = [...colour, alpha].map((value) => Math.min(255, Math.max(0, Math.round(value))));
    png.data.set(bytes, 4 * i);
  }
  return PNG.sync.write(png, { colorType: colourTypeOf(style) });
}

/** PNG's numbers: 0 for grey, 2 for colour, 6 for colour with transparency. */
function colourTypeOf({ ink, paper }: Style): 0 | 2 | 6 {
  const isGrey = [ink, paper ?? ink].every(([red, green, blue]) => red === green && green === blue);
  return paper === undefined ? 6 : isGrey ? 0 : 2;
}
