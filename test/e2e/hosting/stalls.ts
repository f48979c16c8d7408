/**
 * Preloaded into a node: writes every second how long its serving thread was busy without
 * a turn for its timers. Only the thread's own processor time counts, so that what else a
 * busy machine does is no stall. At SIGUSR2 it writes what the node keeps: what it holds
 * without its garbage, which the resident memory includes.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { threadTimer } from "../../thread-time.ts";

const LOOK_EVERY_MS = 5;
const TELL_EVERY_MS = 1_000;

if (isMainThread) {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  let spentMs = threadTimer();
  let longestMs = 0;
  setInterval(() => {
    longestMs = Math.max(longestMs, spentMs());
    spentMs = threadTimer();
  }, LOOK_EVERY_MS).unref();
  setInterval(() => {
    process.stdout.write(`busy for ${longestMs.toFixed(1)} ms\n`);
    longestMs = 0;
  }, TELL_EVERY_MS).unref();
  process.on("SIGUSR2", () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    process.stdout.write(`keeps ${heapUsed + external} bytes\n`);
    // The collection was not the node's.
    spentMs = threadTimer();
  });
}
