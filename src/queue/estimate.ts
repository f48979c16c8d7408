/**
 * When a waiting task will start, and when a full queue has room again: from
 * how long calls of the endpoint ran lately and how many run at a time. With
 * k slots and a mean run time of m, one slot becomes free every m / k on
 * average (Little's law); that is the whole model.
 */

/** The weight of the newest run in the mean: about the last 20 runs count. */
const WEIGHT = 0.1;

const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 600_000;
/** What is told before any run was measured. */
const UNMEASURED_RETRY_MS = 5_000;
/** The part of a full queue that should have drained before its callers come back. */
const DRAINED_PART = 0.01;

/** Exponentially weighted means of the run times of endpoints, in milliseconds. */
export class RunTimes {
  readonly #means = new Map<string, { meanMs: number; runs: number }>();

  /** A call of the endpoint ran for so long. */
  add(endpoint: string, ranMs: number): void {
    const { meanMs, runs } = this.#means.get(endpoint) ?? { meanMs: 0, runs: 0 };
    // The first runs weigh the same each, so that the mean does not lean on the very first.
    const weight = Math.max(1 / (runs + 1), WEIGHT);
    const nextMs = meanMs + weight * (Math.max(ranMs, 0) - meanMs);
    this.#means.set(endpoint, { meanMs: nextMs, runs: runs + 1 });
  }

  /** undefined before the first run. */
  mean(endpoint: string): number | undefined {
    return this.#means.get(endpoint)?.meanMs;
  }
}

export interface StartQuestion {
  /** Tasks that start before this one. */
  readonly position: number;
  /** Tasks of the endpoint that can run at a time. */
  readonly slots: number;
  /** Tasks of the endpoint that run now. */
  readonly running: number;
  readonly meanRunMs: number | undefined;
  readonly nowMs: number;
}

/** When the task can be expected to start; undefined when nothing was measured yet. */
export function estimateStart(question: StartQuestion): number | undefined {
  const { position, slots, running, meanRunMs, nowMs } = question;
  if (meanRunMs === undefined || slots <= 0) {
    return undefined;
  }
  const ends = Math.max(position + 1 - Math.max(slots - running, 0), 0);
  return nowMs + Math.round((ends * meanRunMs) / slots);
}

/**
 * How long a caller whom a full queue refused should wait: until a hundredth
 * of it has drained, and at least one task. All who were refused at one time
 * come back at one time, so a single place would not do for a long queue.
 */
export function retryAfter(question: {
  readonly queueLimit: number;
  readonly slots: number;
  readonly meanRunMs: number | undefined;
}): number {
  const { queueLimit, slots, meanRunMs } = question;
  if (meanRunMs === undefined || slots <= 0) {
    return UNMEASURED_RETRY_MS;
  }
  const places = Math.max(1, queueLimit * DRAINED_PART);
  return Math.min(Math.max((places * meanRunMs) / slots, MIN_RETRY_MS), MAX_RETRY_MS);
}
