/** A sampler of the node process's resource usage, every few seconds. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Metrics } from "./metrics.ts";

/** Interval at which the node's own process is measured. */
const PROCESS_OBSERVE_INTERVAL_MS = 5_000;

/** Starts sampling; disposing stops it. */
export function observeProcess(metrics: Metrics): Disposable {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const look = (): void => {
    const { user, system } = process.cpuUsage();
    metrics.processObserved({
      cpuSeconds: (user + system) / 1e6,
      memoryBytes: process.memoryUsage.rss(),
      delaySeconds: {
        "50": delay.percentile(50) / 1e9,
        "99": delay.percentile(99) / 1e9,
        "100": delay.max / 1e9,
      },
    });
    delay.reset();
  };
  const timer = setInterval(look, PROCESS_OBSERVE_INTERVAL_MS).unref();
  look();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      delay.disable();
    },
  };
}
