/**
 * Measures in a node, which imports it before all else, how much processor time one turn
 * of its event loop took at most. What other processes do on a busy machine does not count.
 * Writes the answer to standard error at SIGUSR2, and begins anew.
 */
import { isMainThread } from "node:worker_threads";

const INTERVAL_MS = 5;

if (isMainThread) {
  let before = process.threadCpuUsage();
  let longestMs = 0;
  let answers = 0;
  setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longestMs = Math.max(longestMs, (user + system) / 1_000);
  }, INTERVAL_MS).unref();
  process.on("SIGUSR2", () => {
    answers += 1;
    process.stderr.write(`stall ${answers}: ${longestMs} ms\n`);
    longestMs = 0;
  });
}
