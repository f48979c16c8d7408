import { api, counter, file, service, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

/** Markup that takes the page over where it is not shown as text. */
const MARKUP = `<script>document.title = "taken"</script><img src=x onerror="document.title = 'taken'">`;
/** Text from right to left, begun by an override that it does not end. */
const BACKWARDS = "\u202eמימין לשמאל";
/** 200 characters and more, without a place to break the line. */
const HOSTILE = `${MARKUP}${BACKWARDS}${"w".repeat(100)}`;

/** Lines of the log that a page cannot show all of. */
const MANY_LINES = 100_000;

const failed = counter({ help: HOSTILE });

/** A service whose author means ill in every text that others see. */
export default service({
  name: "h".repeat(63),
  description: HOSTILE,
  metrics: { failed_total: failed },
  endpoints: {
    ["call".repeat(15)]: api(
      {
        description: HOSTILE,
        input: { text: z.string().describe(HOSTILE).default(HOSTILE) },
        output: z.string().describe(HOSTILE),
      },
      async ({ text }) => {
        console.log(text);
        console.error(HOSTILE);
        return text;
      },
    ),
    fail: task(
      { description: HOSTILE, retries: { max: 1, backoff: 1 } },
      async (_: object, ctx: TaskContext) => {
        ctx.log.error(HOSTILE, { [MARKUP]: HOSTILE });
        throw new Error(HOSTILE);
      },
    ),
    finish: task({ output: z.unknown() }, async (_: object, ctx: TaskContext) => {
      for (const level of ["debug", "info", "warn", "error"] as const) {
        ctx.log[level](HOSTILE, { [MARKUP]: [HOSTILE] });
      }
      ctx.progress(0.5, HOSTILE);
      return { [MARKUP]: HOSTILE };
    }),
    linger: task({}, async (_: object, ctx: TaskContext) => {
      ctx.progress(0.5, HOSTILE);
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    }),
    page: task(
      { output: file({ contentType: "text/html" }) },
      async () => new File([HOSTILE], `${HOSTILE}.html`, { type: "text/html" }),
    ),
    swallow: task({ input: { text: z.string() } }, async () => null),
    flood: api({}, async () => {
      for (let line = 1; line <= MANY_LINES; line += 1) {
        console.log(`line ${line}`);
      }
    }),
    insist: task({}, async (_: object, ctx: TaskContext) => {
      for (const sensor of ["north", "north", "north", "south"]) {
        ctx.log.warn("no reading yet", { sensor });
      }
    }),
    chatter: task({}, async (_: object, ctx: TaskContext) => {
      for (let line = 1; line <= MANY_LINES; line += 1) {
        ctx.log.info(`line ${line}`);
        if (line % 100 === 0) {
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
    }),
  },
});
