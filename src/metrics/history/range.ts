/** The resolutions at which nodes keep what they measured, and the choice of one for a range of time. */

/** Interval at which a node stores what it has measured since the last time. */
export const HISTORY_INTERVAL_MS = 10_000;

interface Level {
  readonly resolutionMs: number;
  /** For how long it can be asked for; rows are deleted a little later. */
  readonly keptMs: number;
}

/** Finest first, in milliseconds; each resolution is a multiple of the one before. */
export const LEVELS: readonly Level[] = [
  { resolutionMs: HISTORY_INTERVAL_MS, keptMs: hours(1) },
  { resolutionMs: 60_000, keptMs: hours(24) },
  { resolutionMs: 600_000, keptMs: hours(7 * 24) },
];

/** How much older than what is kept a range may begin: callers' clocks, and their way here. */
export const HISTORY_SLACK_MS = 5 * 60_000;

/** Time after the end of an interval at which all nodes have stored it. */
const HISTORY_SETTLE_MS = 2_000;

/** Points of a series in one answer: a day of minutes. A week of ten minutes has 1,008. */
export const MAX_POINTS = 1_440;

export interface AskedRange {
  /** Default: an hour before the end. */
  readonly startMs?: number | undefined;
  /** Default: now. */
  readonly endMs?: number | undefined;
  /** 0: `MAX_POINTS`. */
  readonly maxPoints: number;
  readonly nowMs: number;
}

/** The points of an answer: `points` steps of `stepMs`, the first beginning at `fromMs`. */
export interface Range {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly points: number;
}

/** A range that cannot be answered; the message is for the caller. */
export class RangeFault extends Error {
  readonly field: "start_time" | "end_time";

  constructor(field: "start_time" | "end_time", message: string) {
    super(message);
    this.field = field;
  }
}

/** Aligns a range to steps that are multiples of a resolution. Throws a RangeFault. */
export function rangeOf(asked: AskedRange, levels: readonly Level[] = LEVELS): Range {
  const { nowMs, maxPoints } = asked;
  const endMs = Math.min(asked.endMs ?? nowMs, nowMs);
  const startMs = asked.startMs ?? endMs - hours(1);
  if (startMs >= nowMs) {
    throw new RangeFault("start_time", "is in the future: choose a range that has begun");
  }
  if (startMs >= endMs) {
    throw new RangeFault("end_time", "is not after start_time: the range has no length");
  }
  const level = levels.find(({ keptMs }) => startMs >= nowMs - keptMs - HISTORY_SLACK_MS);
  if (level === undefined) {
    const days = (levels.at(-1)?.keptMs ?? 0) / hours(24);
    throw new RangeFault("start_time", `is too long ago: metrics are kept for ${days} days`);
  }
  const { resolutionMs } = level;
  const most = maxPoints === 0 ? MAX_POINTS : Math.min(maxPoints, MAX_POINTS);
  const lengthMs = endMs - startMs;
  const stepMs = resolutionMs * Math.max(1, Math.ceil(Math.round(lengthMs / resolutionMs) / most));
  const settledMs = Math.min(endMs, nowMs - HISTORY_SETTLE_MS);
  const toMs = Math.floor(settledMs / stepMs) * stepMs;
  const points = Math.min(most, Math.max(1, Math.round(lengthMs / stepMs)));
  return { fromMs: toMs - points * stepMs, stepMs, points };
}

/** Until when all nodes have stored what they measured. */
export function settledAt(nowMs: number): number {
  return Math.floor((nowMs - HISTORY_SETTLE_MS) / HISTORY_INTERVAL_MS) * HISTORY_INTERVAL_MS;
}

/** The coarsest resolution that the steps are made of, which has the fewest rows to read. */
export function resolutionOf({ stepMs }: Range): number {
  const fitting = LEVELS.filter(({ resolutionMs }) => stepMs % resolutionMs === 0);
  return fitting.at(-1)?.resolutionMs ?? HISTORY_INTERVAL_MS;
}

function hours(count: number): number {
  return count * 3_600_000;
}
