/** Functions that tell the ledger when they begin and end, so that nothing they do goes unseen. */
import { setTimeout as sleep } from "node:timers/promises";
import { service, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

const input = {
  number: z.int(),
  ledger: z.url(),
  holdMs: z.int().min(0).default(0),
};

interface Work {
  readonly number: number;
  readonly ledger: string;
  readonly holdMs: number;
}

async function report(kind: "start" | "end", { ledger }: Work, ctx: TaskContext): Promise<void> {
  const query = `task=${ctx.taskId}&attempt=${ctx.attempt}&pid=${process.pid}`;
  const answer = await fetch(`${ledger}/${kind}?${query}`, { method: "POST" });
  await answer.arrayBuffer();
}

async function run(work: Work, ctx: TaskContext) {
  await report("start", work, ctx);
  ctx.progress(0.5, "begun");
  if (work.holdMs > 0) {
    await sleep(work.holdMs, undefined, { signal: ctx.signal });
  }
  await report("end", work, ctx);
  return { number: work.number, taskId: ctx.taskId, attempt: ctx.attempt };
}

export default service({
  name: "chaos",
  endpoints: {
    work: task({ input, concurrency: 4 }, run),
    flaky: task({ input, retries: { max: 3, backoff: 10 } }, async (work, ctx) => {
      if (ctx.attempt === 1) {
        await report("start", work, ctx);
        await report("end", work, ctx);
        throw new Error("the first attempt always fails");
      }
      return run(work, ctx);
    }),
    failing: task({ input }, async (work, ctx) => {
      await run(work, ctx);
      throw new Error("it always fails");
    }),
    dying: task({ input }, async (work, ctx) => {
      if (ctx.attempt === 1) {
        await report("start", work, ctx);
        process.exit(3);
      }
      return run(work, ctx);
    }),
  },
});
