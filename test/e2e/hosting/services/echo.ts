import { api, counter, service, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

/** What a deployment is made of in most tests: the version tells one revision from another. */
const VERSION = "one";

const metrics = { said_letters_total: counter({ help: "Letters that were said" }) };

export default service({
  name: "echo",
  metrics,
  endpoints: {
    say: api(
      { input: { text: z.string() }, output: z.string() },
      async ({ text }, ctx: TaskContext<typeof metrics>) => {
        console.log(`said ${text}`);
        ctx.metrics.said_letters_total.add(text.length);
        return `${VERSION} ${text}`;
      },
    ),
    variable: api({ input: { name: z.string() } }, async ({ name }) => process.env[name] ?? null),
    work: task(
      { input: { text: z.string(), forMs: z.int().default(0) }, output: z.string() },
      async ({ text, forMs }) => {
        await new Promise((resolve) => setTimeout(resolve, forMs));
        return `${VERSION} ${text}`;
      },
    ),
  },
});
