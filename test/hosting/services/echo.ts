import { api, service, task } from "tessera";
import * as z from "zod";

/** What a deployment is made of in most tests: the version tells one revision from another. */
const VERSION = "one";

export default service({
  name: "echo",
  endpoints: {
    say: api({ input: { text: z.string() }, output: z.string() }, async ({ text }) => {
      console.log(`said ${text}`);
      return `${VERSION} ${text}`;
    }),
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
