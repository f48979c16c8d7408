/** Functions that wait at a gate of the test, and one that never ends by itself. */
import { api, service, task } from "tessera-platform";
import * as z from "zod";

const gated = { input: { url: z.string() }, output: z.string() };

async function pass(url: string, signal?: AbortSignal): Promise<string> {
  const response = await fetch(url, signal ? { signal } : {});
  return await response.text();
}

export default service({
  name: "gated",
  endpoints: {
    pid: api({ output: z.int() }, () => process.pid),
    ask: api({ ...gated, concurrency: 1 }, ({ url }, ctx) => pass(url, ctx.signal)),
    hold: task({ ...gated, concurrency: 1 }, ({ url }, ctx) => pass(url, ctx.signal)),
    deaf: task(gated, ({ url }) => pass(url)),
    spin: task({ input: gated.input }, async ({ url }) => {
      await pass(url);
      for (;;) {}
    }),
  },
});
