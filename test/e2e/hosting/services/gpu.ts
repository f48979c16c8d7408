import { api, service, task } from "tessera-platform";
import * as z from "zod";

/** What a deployment with a GPU is made of: it says which worker ran, since when, and what it saw. */
const VERSION = "one";
const WORKER = crypto.randomUUID();

if (process.env.BROKEN !== undefined) {
  throw new Error("it is broken");
}

const seen = () => ({
  version: VERSION,
  worker: WORKER,
  sinceMs: performance.timeOrigin,
  untilMs: performance.timeOrigin + performance.now(),
  gpu: process.env.NVIDIA_VISIBLE_DEVICES ?? "",
  memory: process.env.TESSERA_GPU_MEMORY_BYTES ?? "",
});

export default service({
  name: "gpu",
  endpoints: {
    look: api({ timeout: "60s" }, () => seen()),
    learn: task({ input: { forMs: z.int().default(0) } }, async ({ forMs }) => {
      await new Promise((resolve) => setTimeout(resolve, forMs));
      return seen();
    }),
    /** As the host in Python ends when its GPU is lost. */
    lose: task({ retries: { max: 0 } }, () => process.exit(71)),
  },
});
