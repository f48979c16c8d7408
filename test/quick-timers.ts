/** Timers of the jobs of a node in this process that do not keep a test waiting. */
import type * as timers from "../src/time/timer.ts";

/** The longest interval. */
const MAX_INTERVAL_MS = 500;

/** For `vi.mock` of `src/time/timer.ts`: jobs run as they do, twice a second if not more often. */
export async function quickTimers(original: () => Promise<typeof timers>): Promise<typeof timers> {
  const { Timer } = await original();
  return {
    Timer: class extends Timer {
      constructor(...[everyMs, round, onError]: ConstructorParameters<typeof Timer>) {
        const intervalMs = typeof everyMs === "number" ? () => everyMs : everyMs;
        super(() => Math.min(intervalMs(), MAX_INTERVAL_MS), round, onError);
      }
    },
  };
}
