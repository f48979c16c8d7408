/**
 * How many lines of `ctx.log` a worker may send now: a token bucket for all of its calls. It fills
 * at the rate of `protocol/log-rate.ts`, and what it holds at most is the burst that the node
 * takes. The greater part of it is for the ends of logs.
 */
import { LOG_LINES_PER_SECOND } from "../protocol/log-rate.ts";

/** Lines that calls may write in one go before they are held back. */
const MAX_LIVE_LINES = 200;
/** Lines that are sent at the ends of calls in one go. */
export const MAX_LAST_LINES = 800;

export class LogBudget {
  /** Below 0, down to `-MAX_LAST_LINES`, after the ends of logs were sent. */
  #left = MAX_LIVE_LINES;
  #filledMs = performance.now();

  /** Takes room for a line that counts as so many; false where there is not as much. */
  take(lines: number, { last = false }: { readonly last?: boolean } = {}): boolean {
    this.#fill();
    if (this.#left + (last ? MAX_LAST_LINES : 0) < lines) {
      return false;
    }
    this.#left -= lines;
    return true;
  }

  /** How long until there is room for a line that counts as so many. */
  msUntil(lines: number): number {
    this.#fill();
    return Math.max(0, ((lines - this.#left) / LOG_LINES_PER_SECOND) * 1_000);
  }

  #fill(): void {
    const nowMs = performance.now();
    const filled = this.#left + ((nowMs - this.#filledMs) / 1_000) * LOG_LINES_PER_SECOND;
    this.#left = Math.min(MAX_LIVE_LINES, filled);
    this.#filledMs = nowMs;
  }
}
