import { api, service, task } from "tessera-platform";

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** When tasks heard that they are aborted. */
const abortedMs: Record<string, number> = {};

/** Resolves only when aborted. */
const untilAborted = (signal: AbortSignal): Promise<null> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(null), { once: true }));

/** The smallest service: what is measured is everything around it. */
export default service({
  name: "noop",
  endpoints: {
    echo: api({}, () => null),
    /** Returns when it started, for the latency from submit to start. */
    noop: task({ concurrency: 256, queueLimit: 1_000_000 }, nowMs),
    /** The same, kept no longer than it must be. */
    brief: task({ concurrency: 256, queueLimit: 1_000_000, retention: "1s" }, nowMs),
    /** Runs until it is aborted, as many as there are. */
    aborted: task({ concurrency: 256, timeout: "1h" }, async (_input, ctx) => {
      await untilAborted(ctx.signal);
      abortedMs[ctx.taskId] = nowMs();
    }),
    /** When those heard of it, by id. */
    aborts: api({}, () => abortedMs),
  },
});
