import { api, service, task } from "tessera-platform";
import * as z from "zod";
import { countWords } from "./words.ts";

export default service({
  name: "my-service",
  endpoints: {
    // An api answers in the call.
    count: api({ input: z.object({ text: z.string() }), output: z.int() }, ({ text }) =>
      countWords(text),
    ),

    // A task is queued, and its result is stored until somebody fetches it.
    count_all: task(
      {
        input: z.object({ texts: z.array(z.string()).min(1) }),
        output: z.array(z.int()),
        timeout: "10m",
        retries: { max: 2, backoff: "5s" },
      },
      ({ texts }, ctx) =>
        texts.map((text, index) => {
          ctx.signal.throwIfAborted();
          ctx.progress((index + 1) / texts.length, `${index + 1} of ${texts.length}`);
          return countWords(text);
        }),
    ),
  },
});
