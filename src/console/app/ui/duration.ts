/** Durations as people say them: `340 ms`, `2.4 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 1) {
    return `${Math.max(0, Math.round(ms))} ms`;
  }
  if (seconds < 60) {
    return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  }
  const [whole, small, large] =
    seconds < 3_600 ? [Math.round(seconds), "s", "min"] : [Math.round(seconds / 60), "min", "h"];
  return `${Math.floor(whole / 60)} ${large} ${whole % 60} ${small}`;
}

/** The duration between two times of the API; to now where the second has not come. */
export function between(from: string, to: string | undefined, nowMs: number): string {
  return duration((to === undefined ? nowMs : Date.parse(to)) - Date.parse(from));
}
