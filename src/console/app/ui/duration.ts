/** Durations as people say them, in two units at most: `340 ms`, `2.4 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 1) {
    return `${Math.max(0, Math.round(ms))} ms`;
  }
  if (seconds < 59.5) {
    return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  }
  if (Math.round(seconds) < 3_600) {
    return both(seconds, 60, ["min", "s"]);
  }
  const minutes = seconds / 60;
  return Math.round(minutes) < 1_440
    ? both(minutes, 60, ["h", "min"])
    : both(minutes / 60, 24, ["d", "h"]);
}

function both(amount: number, size: number, [large, small]: readonly [string, string]): string {
  const whole = Math.round(amount);
  const [more, less] = [Math.floor(whole / size), whole % size];
  return less === 0 ? `${more} ${large}` : `${more} ${large} ${less} ${small}`;
}

/** The duration between two times of the API; to now where the second has not come. */
export function between(from: string, to: string | undefined, nowMs: number): string {
  return duration((to === undefined ? nowMs : Date.parse(to)) - Date.parse(from));
}

/** What is due sooner is as good as under way. */
const SOON_MS = 5_000;

/** Whether something is due so late that it is worth saying when. */
export const isDueLater = (at: string, nowMs: number): boolean => Date.parse(at) > nowMs + SOON_MS;

/** Milliseconds of a duration of the API, such as `0.300s`. */
export const durationMs = (text: string): number => Number.parseFloat(text) * 1_000;
