/** The digits service: recognizes handwritten digits in pictures. */
import { setImmediate } from "node:timers/promises";
import {
  api,
  BadInput,
  counter,
  file,
  histogram,
  service,
  type TaskContext,
  task,
} from "tessera-platform";
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

/** When pictures become harder to read, or of other digits, than those it was trained on, these show it. */
const metrics = {
  digits_read_total: counter({ help: "Digits that were read", labels: ["digit"] }),
  digits_confidence: histogram({
    help: "The probability that the network gave to the digit it chose",
    buckets: [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99],
  }),
};
type Context = TaskContext<typeof metrics>;

export default service({
  name: "digits",
  description: "Reads handwritten digits, one in each picture.",
  metrics,
  endpoints: {
    classify: api(
      {
        input: { image: png },
        output: z.object(prediction),
        description: "The digit in a PNG picture.",
      },
      async ({ image }, ctx: Context) => {
        const { digit, confidence } = await read(image, ctx);
        return { digit, confidence };
      },
    ),

    classify_batch: task(
      {
        input: { images: png.array({ min: 1, max: MAX_BATCH }) },
        output: z.array(z.object({ filename: z.string(), ...prediction })),
        description: "The digits in many PNG pictures, in their order.",
      },
      async ({ images }, ctx: Context) => {
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
      async ({ images }, ctx: Context) => {
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

/** Reads one picture after another, reports progress, and stops when the task is aborted. */
async function* readAll(images: readonly File[], ctx: Context) {
  for (const [i, image] of images.entries()) {
    ctx.signal.throwIfAborted();
    yield { filename: image.name, ...(await read(image, ctx)) };
    ctx.progress((i + 1) / images.length, `${i + 1} of ${images.length} images`);
    // Yields to the event loop, so that the worker can respond and be cancelled
    // between two pictures.
    await setImmediate();
  }
}

/** An unreadable picture is the caller's mistake: the error says which one and why. */
async function read(image: File, { metrics }: Context): Promise<Recognized> {
  try {
    const recognized = recognize(await image.bytes(), image.name || "the image");
    metrics.digits_read_total.add(1, { digit: recognized.digit });
    metrics.digits_confidence.observe(recognized.confidence);
    return recognized;
  } catch (err) {
    if (err instanceof UnreadableImage) {
      throw new BadInput(err.message, { cause: err });
    }
    throw err;
  }
}
