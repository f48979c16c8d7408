import { setTimeout as sleep } from "node:timers/promises";
import { api, service, stream, type TaskContext, task } from "tessera-platform";
import * as z from "zod";

let aborted = 0;

async function* drops(signal: AbortSignal) {
  console.log("the first drop");
  try {
    for (let number = 1; ; number += 1) {
      yield number;
      await sleep(100, undefined, { signal });
    }
  } finally {
    aborted += signal.aborted ? 1 : 0;
  }
}

/** Streams that nobody but their callers ends. */
export default service({
  name: "endless",
  endpoints: {
    drip: api({ input: {}, output: stream(z.int()), concurrency: 100 }, (_, { signal }) =>
      drops(signal),
    ),
    aborted: api({ input: {}, concurrency: 100 }, async () => aborted),
    trickle: task(
      { input: {}, output: stream(z.int()), concurrency: 100 },
      (_, { signal }: TaskContext) => drops(signal),
    ),
  },
});
