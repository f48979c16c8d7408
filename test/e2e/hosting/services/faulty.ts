import { setTimeout as sleep } from "node:timers/promises";
import { service, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

/** How often a run says that it is alive. */
const SIGN_INTERVAL_MS = 50;

/** Tasks that tell a ledger, before they go on, that they begin, live and end. */
export default service({
  name: "faulty",
  endpoints: {
    work: task(
      {
        input: { ledger: z.url(), forMs: z.int() },
        concurrency: 4,
        retries: { max: 20, backoff: 10 },
      },
      async ({ ledger, forMs }, ctx: TaskContext) => {
        const run = crypto.randomUUID();
        const say = async (what: string): Promise<void> => {
          const query = `task=${ctx.taskId}&attempt=${ctx.attempt}&run=${run}&pid=${process.pid}`;
          await fetch(`${ledger}/${what}?${query}`, { method: "POST" });
        };
        await say("begin");
        const endMs = performance.now() + forMs;
        while (performance.now() < endMs) {
          await sleep(SIGN_INTERVAL_MS, undefined, { signal: ctx.signal });
          await say("alive");
        }
        await say("end");
        return { run, attempt: ctx.attempt };
      },
    ),
  },
});
