import { writeSync } from "node:fs";
import fc from "fast-check";
import { api, service } from "tessera-platform";
import * as z from "zod";
import { hostileLife } from "../../../fixtures/hostile-bytes.ts";

/** Writes to the channel, as only the worker's own program should; `chunkBytes` at a time. */
async function send(bytes: Buffer, chunkBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(3, bytes, at, Math.min(chunkBytes, bytes.length - at));
    } catch {
      // The node has not read what is there.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

export default service({
  name: "fuzzer",
  endpoints: {
    alive: api({}, () => "alive"),
    /** Sends what the fuzzer makes of the seed, until its node ends the worker. */
    fuzz: api({ input: { seed: z.int() }, timeout: "5s" }, async ({ seed }) => {
      for (let life = 0; ; life += 1) {
        for (const bytes of fc.sample(hostileLife, { seed: seed + life, numRuns: 3 })) {
          await send(bytes, [65_536, 65_536, 1_000, 7][(seed + life) % 4] ?? 1);
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    }),
  },
});
