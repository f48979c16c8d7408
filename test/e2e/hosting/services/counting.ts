import { api, counter, gauge, histogram, service, type TaskContext } from "tessera-platform";
import * as z from "zod";

const metrics = {
  words_total: counter({ help: "Words that were <b>said</b>", labels: ["word"] }),
  cache_bytes: gauge({ help: "Size of the cache" }),
  load_seconds: histogram({ help: "Time to load a model" }),
  unused_total: counter({ help: "Nothing counts it" }),
};

/** Counts what it is told, in a metric of each kind. */
export default service({
  name: "counting",
  metrics,
  endpoints: {
    say: api(
      { input: { words: z.record(z.string(), z.number()) } },
      ({ words }, ctx: TaskContext<typeof metrics>) => {
        for (const [word, times] of Object.entries(words)) {
          ctx.metrics.words_total.add(times, { word });
        }
        ctx.metrics.cache_bytes.set(3 * 1_048_576);
        ctx.metrics.load_seconds.observe(0.2);
      },
    ),
  },
});
