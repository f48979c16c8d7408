/** Timers of the jobs of a node in this process that do not keep a test waiting. */
import { afterAll, beforeAll, vi } from "vitest";
import { Timer } from "../src/time/timer.ts";

/** The longest pause. */
const MAX_PAUSE_MS = 500;

/** Lets jobs run twice a second, if not more often, for as long as the tests of the file that calls it. */
export function quickTimers(): void {
  const { pauseMs } = Timer.prototype;
  beforeAll(() => {
    vi.spyOn(Timer.prototype, "pauseMs").mockImplementation(function (this: Timer) {
      return Math.min(pauseMs.call(this), MAX_PAUSE_MS);
    });
  });
  afterAll(() => void vi.mocked(Timer.prototype.pauseMs).mockRestore());
}
