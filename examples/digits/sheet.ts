/** Draws a contact sheet of recognized digits. */
import { Canvas, type Colour } from "./canvas.ts";
import type { Image } from "./image.ts";
import { widthOf, write } from "./lettering.ts";
import type { Prediction } from "./network.ts";

/** A small picture and what the network says of it. */
export interface Card extends Prediction {
  /** At most `PICTURE_SIDE` pixels on each side, opaque: see `thumbnail`. */
  readonly picture: Image;
}

/** Below this confidence a prediction is marked as doubtful. */
export const DOUBTFUL_BELOW = 0.8;

/** Width and height of the place for a picture, in pixels. */
export const PICTURE_SIDE = 128;
const PADDING = 12;
const CAPTION_HEIGHT = 44;
const GAP = 16;
const MAX_COLUMNS = 16;
const CARD_WIDTH = PICTURE_SIDE + 2 * PADDING;
const CARD_HEIGHT = PICTURE_SIDE + PADDING + CAPTION_HEIGHT;
/** Sheets are somewhat wider than high. */
const ASPECT = 1.2;

const BACKGROUND: Colour = [236, 239, 243];
const CERTAIN = {
  card: [255, 255, 255],
  edge: [213, 219, 226],
  digit: [22, 32, 46],
  confidence: [91, 104, 120],
} as const;
const DOUBTFUL = {
  card: [255, 243, 224],
  edge: [230, 126, 34],
  digit: [176, 67, 8],
  confidence: [176, 67, 8],
} as const;

/** How many images stand beside each other and below each other. */
export function gridOf(count: number): { columns: number; rows: number } {
  const wished = Math.ceil(Math.sqrt((count * ASPECT * CARD_HEIGHT) / CARD_WIDTH));
  const columns = Math.min(count, MAX_COLUMNS, wished);
  return { columns, rows: Math.ceil(count / columns) };
}

/**
 * One picture of all images in rows, each with the digit seen in it and the
 * confidence below; doubtful ones on orange.
 */
export function contactSheet(cards: readonly Card[]): Image {
  const { columns, rows } = gridOf(cards.length);
  const width = GAP + columns * (CARD_WIDTH + GAP);
  const height = GAP + rows * (CARD_HEIGHT + GAP);
  const canvas = new Canvas(width, height, BACKGROUND);
  for (const [i, card] of cards.entries()) {
    const left = GAP + (i % columns) * (CARD_WIDTH + GAP);
    const top = GAP + Math.floor(i / columns) * (CARD_HEIGHT + GAP);
    drawCard(canvas, card, { left, top });
  }
  return canvas;
}

function drawCard(
  canvas: Canvas,
  { picture, digit, confidence }: Card,
  { left, top }: { left: number; top: number },
): void {
  const colours = confidence < DOUBTFUL_BELOW ? DOUBTFUL : CERTAIN;
  const outside = { left, top, width: CARD_WIDTH, height: CARD_HEIGHT, radius: 10 };
  const inside = { left: left + 2, top: top + 2, radius: 8 };
  canvas.fill(outside, colours.edge);
  canvas.fill({ ...inside, width: CARD_WIDTH - 4, height: CARD_HEIGHT - 4 }, colours.card);
  const pictureLeft = left + PADDING + ((PICTURE_SIDE - picture.width) >> 1);
  const pictureTop = top + PADDING + ((PICTURE_SIDE - picture.height) >> 1);
  canvas.paste(picture, pictureLeft, pictureTop);

  const baseline = top + CARD_HEIGHT - PADDING;
  const pictureRight = left + PADDING + PICTURE_SIDE;
  write(canvas, String(digit), {
    left: left + PADDING + 3,
    baseline,
    height: 20,
    pen: 3.4,
    colour: colours.digit,
  });
  const percentage = `${(100 * confidence).toFixed(1)} %`;
  write(canvas, percentage, {
    left: pictureRight - 2 - widthOf(percentage, 13),
    baseline,
    height: 13,
    pen: 1.7,
    colour: colours.confidence,
  });
}
