import { readdirSync, readFileSync } from "node:fs";
import { PNG } from "pngjs";
import { describe, expect, test } from "vitest";
import { decodePng, encodePng, type Image, UnreadableImage } from "../../examples/digits/image.ts";
import { PARAMETER_LENGTH } from "../../examples/digits/network.ts";
import { normalize } from "../../examples/digits/normalize.ts";
import { recognize } from "../../examples/digits/recognize.ts";
import { contactSheet, gridOf, PICTURE_SIDE } from "../../examples/digits/sheet.ts";
import { thumbnail } from "../../examples/digits/thumbnail.ts";
import { readWeights, writeWeights } from "../../examples/digits/weights.ts";
import { pngFile } from "./png-file.ts";

const folder = new URL("../../examples/digits/", import.meta.url);
const names = readdirSync(new URL("images/", folder)).sort();

function sample(name: string): Buffer {
  return readFileSync(new URL(`images/${name}`, folder));
}

/** The same picture with every pixel changed; alpha stays. */
function recoloured(image: Image, change: (value: number) => number): Image {
  const data = image.data.map((value, i) => (i % 4 === 3 ? value : change(value)));
  return { ...image, data };
}

function solid(width: number, height: number, pixel: readonly number[]): Buffer {
  const png = new PNG({ width, height });
  png.data.set(png.data.map((_, i) => pixel[i % 4] ?? 0));
  return PNG.sync.write(png);
}

describe("recognizing", () => {
  test.each(names)("reads the digit that %s is named after", (name) => {
    expect(recognize(sample(name), name).digit).toBe(Number(name[0]));
  });

  test("there are two dozen samples with every digit among them", () => {
    expect(names.length).toBeGreaterThanOrEqual(20);
    expect(new Set(names.map((name) => name[0])).size).toBe(10);
  });

  test.each(names)("sees the same in %s when light and dark are exchanged", (name) => {
    const image = PNG.sync.read(sample(name));
    const opaque = thumbnail(image, Math.max(image.width, image.height));
    const inverted = recoloured(opaque, (value) => 255 - value);
    const expected = normalize(opaque, name);
    const difference = normalize(inverted, name).map((v, i) => Math.abs(v - (expected[i] ?? 0)));
    expect(Math.max(...difference)).toBeLessThan(0.001);
  });

  test("sees the same in faint ink", () => {
    const faint = recoloured(decodePng(sample("3-b.png"), "3"), (value) => 200 + value / 5);
    expect(recognize(encodePng(faint), "faint").digit).toBe(3);
  });

  test("finds white ink on a transparent ground", () => {
    const png = PNG.sync.read(sample("2-b.png"));
    const transparent = new PNG({ width: png.width, height: png.height });
    transparent.data.set(recoloured(png, () => 255).data);
    expect(recognize(PNG.sync.write(transparent), "white").digit).toBe(2);
  });

  test.each([0, 2, 4, 6] as const)(
    "reads PNG of colour type %i, with 8 and 16 bits",
    (colorType) => {
      const png = PNG.sync.read(sample("5-b.png"));
      expect(recognize(PNG.sync.write(png, { colorType }), "five").digit).toBe(5);
      png.data = Buffer.from(Uint16Array.from(png.data, (value) => value * 257).buffer);
      expect(recognize(PNG.sync.write(png, { colorType, bitDepth: 16 }), "five").digit).toBe(5);
    },
  );
});

test("reads a PNG with a palette", () => {
  const { width, height, data } = PNG.sync.read(sample("7-b.png"));
  const rows = new Uint8Array(height * (width + 1));
  for (let i = 0; i < width * height; i++) {
    rows[Math.floor(i / width) * (width + 1) + 1 + (i % width)] = (data[4 * i] ?? 0) < 128 ? 1 : 0;
  }
  const palette = Uint8Array.of(255, 240, 200, 120, 0, 60);
  const file = pngFile({ width, height, depth: 8, colourType: 3 }, rows, palette);
  expect(recognize(file, "seven").digit).toBe(7);
});

describe("refusing", () => {
  const refused = (file: Uint8Array) => () => recognize(file, "a.png");

  test.each([
    ["white", solid(40, 40, [255, 255, 255, 255])],
    ["black", solid(40, 40, [0, 0, 0, 255])],
    ["transparent", solid(40, 40, [0, 0, 0, 0])],
    ["a single pixel", solid(1, 1, [9, 99, 9, 255])],
  ])("a blank picture that is %s", (_, file) => {
    expect(refused(file)).toThrow(UnreadableImage);
    expect(refused(file)).toThrow("a.png is blank");
  });

  test.each([
    ["nothing", Buffer.alloc(0)],
    ["text", Buffer.from("not a picture at all, but text")],
    ["a JPEG file", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46])],
  ])("%s", (_, file) => {
    expect(refused(file)).toThrow("a.png is not a PNG file");
  });

  test("a file that ends anywhere too early", () => {
    const file = sample("0-a.png");
    for (let length = 8; length < file.length - 12; length += 7) {
      expect(refused(file.subarray(0, length))).toThrow("a.png is damaged");
    }
  });

  test("a file with a changed byte in its pixels", () => {
    const file = Buffer.from(sample("1-a.png"));
    file[60] = (file[60] ?? 0) ^ 0xff;
    expect(refused(file)).toThrow("a.png is damaged");
  });

  test("more pixels than allowed, before decoding", () => {
    const header = { width: 4097, height: 4, depth: 8, colourType: 0 };
    expect(refused(pngFile(header, Buffer.alloc(9)))).toThrow("a.png has 4097×4 pixels");
    expect(refused(pngFile({ ...header, width: 0 }, Buffer.alloc(9)))).toThrow("0×4 pixels");
  });

  test.each([true, false])(
    "pixels that unpack to more than they may (interlaced: %s)",
    (interlaced) => {
      const header = { width: 8, height: 8, depth: 8, colourType: 0, interlaced };
      const file = pngFile(header, Buffer.alloc(50_000_000));
      const before = process.memoryUsage().arrayBuffers;
      expect(refused(file)).toThrow(UnreadableImage);
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000);
    },
  );
});

describe("normalizing", () => {
  test("fits a digit into 20 pixels and puts its centre of mass in the middle", () => {
    const pixels = normalize(PNG.sync.read(sample("6-a.png")), "six");
    const inked = [...pixels.entries()].filter(([, value]) => value > 0);
    const rows = inked.map(([i]) => Math.floor(i / 28));
    expect(Math.max(...rows) - Math.min(...rows) + 1).toBe(20);
    const mass = inked.reduce((sum, [, value]) => sum + value, 0);
    const middle = inked.reduce((sum, [i, value]) => sum + value * (i % 28), 0) / mass;
    expect(Math.abs(middle - 14)).toBeLessThan(0.6);
    expect(Math.max(...pixels)).toBe(1);
  });

  test("does not depend on size and place", () => {
    const image = PNG.sync.read(sample("8-a.png"));
    const larger = new PNG({ width: 300, height: 200 });
    larger.data.set(larger.data.map((_, i) => (i % 4 === 3 ? 255 : 0)));
    PNG.bitblt(image, larger, 0, 0, 28, 28, 250, 9);
    expect(normalize(larger, "eight")).toEqual(normalize(image, "eight"));
  });
});

describe("the contact sheet", () => {
  const cards = names.map((name) => {
    const { image, digit, confidence } = recognize(sample(name), name);
    return { picture: thumbnail(image, PICTURE_SIDE), digit, confidence };
  });

  test("is a PNG with a card of 152×184 pixels for each picture", () => {
    const { columns, rows } = gridOf(cards.length);
    const { width, height } = PNG.sync.read(Buffer.from(encodePng(contactSheet(cards))));
    expect({ columns, rows }).toEqual({ columns: 6, rows: 4 });
    expect({ width, height }).toEqual({ width: 16 + 6 * 168, height: 16 + 4 * 200 });
  });

  test("marks doubtful predictions by colour", () => {
    const [card] = cards;
    const corner = (confidence: number) => {
      const { data, width } = contactSheet(card === undefined ? [] : [{ ...card, confidence }]);
      const at = 4 * ((16 + 170) * width + 16 + 5);
      return [...data.subarray(at, at + 3)];
    };
    expect(corner(0.99)).toEqual([255, 255, 255]);
    expect(corner(0.5)).toEqual([255, 243, 224]);
  });

  test.each([1, 2, 3, 7, 50, 200])("has room for %i pictures", (count) => {
    const { columns, rows } = gridOf(count);
    expect(columns * rows).toBeGreaterThanOrEqual(count);
    expect(columns * (rows - 1)).toBeLessThan(count);
  });

  test("keeps the proportions of long pictures", () => {
    const long = PNG.sync.read(solid(400, 3, [200, 30, 30, 255]));
    expect(thumbnail(long, 128)).toMatchObject({ width: 128, height: 1 });
  });
});

describe("the file of weights", () => {
  const file = readFileSync(new URL("weights.bin", folder));

  test("has at most 200 kB and survives reading and writing", () => {
    expect(file.length).toBeLessThanOrEqual(200_000);
    expect(readWeights(file)).toHaveLength(PARAMETER_LENGTH);
    expect(Buffer.from(writeWeights(readWeights(file)))).toEqual(file);
  });

  test("is refused when damaged, of another network, or something else", () => {
    const damaged = Buffer.from(file);
    damaged[500] = (damaged[500] ?? 0) ^ 1;
    expect(() => readWeights(damaged)).toThrow("damaged");
    expect(() => readWeights(writeWeights(new Float32Array(5)))).toThrow("another network");
    expect(() => readWeights(file.subarray(0, -4))).toThrow("another network");
    expect(() => readWeights(Buffer.from("PNG"))).toThrow("not a file of weights");
  });
});
