import { appendFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { api, counter, file, service, stream, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

const VERSION = "one";

const metrics = { afar_copied_bytes_total: counter({ help: "Bytes that were copied" }) };

/** What a worker on another machine has to bring here and there. */
export default service({
  name: "afar",
  metrics,
  endpoints: {
    secret: api({ input: {} }, async () => `${VERSION} ${process.env.SECRET_OF_TEST ?? "none"}`),
    parent: api({ input: {} }, async () => ({ pid: process.pid, agent: process.ppid })),
    /** How often it was called on this machine. */
    visits: api({ input: {} }, async () => {
      const visits = join(process.env.TESSERA_CACHE ?? "", "visits");
      await appendFile(visits, "x");
      return (await readFile(visits)).length;
    }),
    copy: api({ input: { original: file() }, output: file() }, ({ original }) => original),
    keep: task(
      { input: { original: file() }, output: file() },
      async ({ original }, ctx: TaskContext<typeof metrics>) => {
        ctx.metrics.afar_copied_bytes_total.add(original.size);
        ctx.log.info("kept", { bytes: original.size });
        ctx.progress(0.5, "halfway");
        console.log(`a copy of ${original.size} bytes`);
        return original;
      },
    ),
    repeat: task(
      { input: { text: z.string(), times: z.int() }, output: z.string() },
      async ({ text, times }) => text.repeat(times),
    ),
    count: task({ input: { to: z.int() }, output: stream(z.int()) }, async function* ({ to }) {
      for (let number = 1; number <= to; number += 1) {
        yield number;
      }
    }),
    hold: task(
      { input: { forMs: z.int() }, retries: { max: 0, backoff: 0 } },
      async ({ forMs }, ctx: TaskContext) => {
        ctx.log.info("holding", { pid: process.pid });
        await sleep(forMs, undefined, { signal: ctx.signal });
        return { attempt: ctx.attempt, pid: process.pid, version: VERSION };
      },
    ),
  },
});
