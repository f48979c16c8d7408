/** The summarizer service: extractive summaries of texts. */
import { setImmediate } from "node:timers/promises";
import { api, BadInput, type Input, service, type TaskContext, task } from "tessera-platform";
import * as z from "zod";
import { summarize, TextTooLong } from "./summary.ts";

const MAX_TEXT_LENGTH = 1_000_000;

const EXAMPLE =
  "A lighthouse marks a coast for ships at night. Its lamp is small, but its lens gathers the light into a beam. " +
  "The lens of Augustin Fresnel did this with rings of glass, and was far lighter than one of solid glass. " +
  "Ships could see a light with such a lens from thirty kilometres away. " +
  "Each lighthouse turns or blinks in a rhythm of its own, so that sailors know which one they see. " +
  "Most keepers have gone since the lamps were automated.";

const text = z
  .string()
  .min(1)
  .max(MAX_TEXT_LENGTH)
  .describe("The text; paragraphs are separated by empty lines.")
  .meta({ examples: [EXAMPLE] });
const sentences = z
  .int()
  .min(1)
  .max(100)
  .default(3)
  .describe("How many sentences the summary has.");

const summarizeInput = z.object({ text, sentences });
const batchInput = z.object({ texts: z.array(text).min(1).max(1_000), sentences });

@service({
  name: "summarizer",
  description: "Sums up texts by picking out their most telling sentences; nothing is rewritten.",
})
export default class Summarizer {
  /** Sums up one text, in the call. */
  @api({
    input: summarizeInput,
    output: z.string(),
    description: "The most telling sentences of a text, in their original order.",
  })
  summarize({ text, sentences }: Input<typeof summarizeInput>) {
    return summarizeOrRefuse(text, sentences, "text");
  }

  /** Sums up many texts, as a task. */
  @task({
    input: batchInput,
    output: z.array(z.string()),
    description: "One summary per text, in the order of the texts.",
  })
  async summarize_batch({ texts, sentences }: Input<typeof batchInput>, ctx: TaskContext) {
    const summaries: string[] = [];
    for (const [i, text] of texts.entries()) {
      ctx.signal.throwIfAborted();
      summaries.push(summarizeOrRefuse(text, sentences, `texts.${i}`));
      ctx.progress(summaries.length / texts.length, `${summaries.length} of ${texts.length} texts`);
      // Yields to the event loop, so that the worker can respond and be cancelled
      // between two texts.
      await setImmediate();
    }
    ctx.log.info("summarized a batch", { texts: texts.length, sentences });
    return summaries;
  }
}

/** A text that is too long is the caller's mistake: the error says which one. */
function summarizeOrRefuse(text: string, sentences: number, argument: string): string {
  try {
    return summarize(text, sentences);
  } catch (err) {
    if (err instanceof TextTooLong) {
      throw new BadInput(`${argument}: ${err.message}`, { cause: err });
    }
    throw err;
  }
}
