import { setImmediate } from "node:timers/promises";
import { api, BadInput, file, service, type TaskContext, task } from "tessera";
import * as z from "zod";
import { encodePng, UnreadableImage } from "./image.ts";
import { type Recognized, recognize } from "./recognize.ts";
import { type Card, contactSheet, PICTURE_SIDE } from "./sheet.ts";
import { thumbnail } from "./thumbnail.ts";

const MAX_BATCH = 1_000;
const MAX_ON_SHEET = 200;

const png = file({ contentType: "image/png" });
const prediction = {
  digit: z.int().min(0).max(9),
  confidence: z.number().min(0).max(1).describe("The probability that the network gives to it."),
};

export default service({
  name: "digits",
  description: "Reads handwritten digits, one in each picture.",
  endpoints: {
    classify: api(
      {
        input: { image: png },
        output: z.object(prediction),
        description: "The digit in a PNG picture.",
      },
      async ({ image }) => {
        const { digit, confidence } = await read(image);
        return { digit, confidence };
      },
    ),

    classify_batch: task(
      {
        input: { images: png.array({ min: 1, max: MAX_BATCH }) },
        output: z.array(z.object({ filename: z.string(), ...prediction })),
        description: "The digits in many PNG pictures, in their order.",
      },
      async ({ images }, ctx) => {
        const results = [];
        for await (const { filename, digit, confidence } of readAll(images, ctx)) {
          results.push({ filename, digit, confidence });
        }
        return results;
      },
    ),

    contact_sheet: task(
      {
        input: { images: png.array({ min: 1, max: MAX_ON_SHEET }) },
        output: png,
        description: "One PNG picture of all pictures with the digit seen in each.",
      },
      async ({ images }, ctx) => {
        const cards: Card[] = [];
        for await (const { image, digit, confidence } of readAll(images, ctx)) {
          cards.push({ picture: thumbnail(image, PICTURE_SIDE), digit, confidence });
        }
        const sheet = encodePng(contactSheet(cards));
        return new File([sheet], "contact-sheet.png", { type: "image/png" });
      },
    ),
  },
});

/** Reads one picture after another, tells how far it is, and stops when the task is aborted. */
async function* readAll(images: readonly File[], ctx: TaskContext) {
  for (const [i, image] of images.entries()) {
    ctx.signal.throwIfAborted();
    yield { filename: image.name, ...(await read(image)) };
    ctx.progress((i + 1) / images.length, `${i + 1} of ${images.length} images`);
    // Lets the worker answer and hear of a cancel between two pictures.
    await setImmediate();
  }
}

/** A picture that cannot be read is the caller's mistake: it is told which one and why. */
async function read(image: File): Promise<Recognized> {
  try {
    return recognize(await image.bytes(), image.name || "the image");
  } catch (err) {
    if (err instanceof UnreadableImage) {
      throw new BadInput(err.message, { cause: err });
    }
    throw err;
  }
}
