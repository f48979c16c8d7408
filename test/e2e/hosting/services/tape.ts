import { api, file, service, stream, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

/** Attempts that wait to be let go. */
const waiting: (() => void)[] = [];

const MARKUP = "<script>document.title = 'taken'</script>";

/** A red square of one pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** Throws below so many frames of its own. */
const sink = (depth: number): number => {
  if (depth === 0) {
    throw new Error("the tape is at the bottom");
  }
  return deeper(depth - 1) + 1;
};
// In turn, because a frame that repeats is shown once.
const deeper = (depth: number): number => sink(depth) + 1;

/** Tasks of every kind that a page has to show. */
export default service({
  name: "tape",
  endpoints: {
    letGo: api({ output: z.int() }, async () => {
      const all = waiting.splice(0);
      for (const go of all) {
        go();
      }
      return all.length;
    }),
    record: task(
      { output: z.string(), retries: { max: 2, backoff: 50 } },
      async (_: object, ctx: TaskContext) => {
        ctx.log.info("the tape runs", { attempt: ctx.attempt });
        ctx.progress(ctx.attempt / 4, "recording");
        await new Promise<void>((resolve) => waiting.push(resolve));
        if (ctx.attempt < 3) {
          throw new Error(`the tape tore at meter ${ctx.attempt}`);
        }
        return "the tape held";
      },
    ),
    dictate: task(
      { output: stream(z.string()), retries: { max: 1, backoff: 0 } },
      async function* (_: object, { attempt }: TaskContext) {
        yield `take ${attempt}, `;
        await new Promise<void>((resolve) => waiting.push(resolve));
        if (attempt === 1) {
          throw new Error("again");
        }
        yield "the end";
      },
    ),
    still: task({ output: file({ contentType: "image/png" }) }, async () =>
      Buffer.from(PIXEL, "base64"),
    ),
    mark: task({ input: { cover: file({ contentType: "image/png" }), text: z.string() } }, () => 1),
    label: task(
      { input: { length: z.int().default(1) }, output: z.string(), concurrency: 64 },
      async ({ length }) => MARKUP.repeat(length),
    ),
    rows: task({ input: { count: z.int() }, output: z.any() }, async ({ count }) => ({
      total: count,
      rows: Array.from({ length: count }, (_, at) => ({ at, text: MARKUP, имя: "名前" })),
    })),
    sink: task(
      { output: z.int(), retries: { max: 60, backoff: 0 } },
      async (_: object, ctx: TaskContext) => {
        if (ctx.attempt <= 60) {
          throw new Error(`attempt ${ctx.attempt} sank`);
        }
        ctx.log.info("m".repeat(1_000_000));
        Error.stackTraceLimit = 500;
        return sink(500);
      },
    ),
    quick: task(
      { input: { take: z.int() }, queueLimit: 100_000, concurrency: 64 },
      async () => null,
    ),
    hiss: task({ input: {} }, async (_: object, ctx: TaskContext) => {
      ctx.log.warn(MARKUP, { markup: MARKUP });
      throw new Error(`${MARKUP} שלום ${"a".repeat(200)}`);
    }),
  },
});
