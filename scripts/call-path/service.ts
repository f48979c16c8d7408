import { setTimeout } from "node:timers/promises";
import { service, task } from "tessera-platform";
import * as z from "zod";

/** Longer than its submit takes to be answered, so that no end is counted with it. */
const RUN_MS = 500;

export default service({
  name: "call-path",
  endpoints: {
    wait: task(
      { input: z.object({ text: z.string() }), output: z.string(), concurrency: 100 },
      ({ text }) => setTimeout(RUN_MS, text),
    ),
  },
});
