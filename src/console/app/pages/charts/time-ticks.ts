/**
 * The ticks of an axis of time. They follow from the range and the width alone, so that all charts of
 * a page have the same.
 */

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/** The distances that ticks may have. */
const STEPS_S = [
  ...[1, 2, 3, 5, 10, 15, 20, 30],
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((minutes) => minutes * MINUTE_S),
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_S),
  ...[1, 2, 3, 7].map((days) => days * DAY_S),
];

/** A time with seconds is wider than one of minutes, or a day. */
const SECONDS_PX = 58;
const MINUTES_PX = 44;
const GAP_PX = 12;

/** Fewer would not show the scale. */
const MIN_TICKS = 3;

/**
 * Round times between two, in seconds since 1970, as many as have room for their labels. Where those
 * are fewer than three, three at even distances. No label is cut by an edge, or is below the labels of
 * the other axis.
 */
export function ticksBetween(minS: number, maxS: number, widthPx: number): number[] {
  const secondPx = widthPx / (maxS - minS);
  const labelPx = (stepS: number) => (stepS < MINUTE_S ? SECONDS_PX : MINUTES_PX);
  const stepS = STEPS_S.find((step) => step * secondPx >= labelPx(step) + GAP_PX);
  const halfS = stepS === undefined ? 0 : labelPx(stepS) / 2 / secondPx;
  const ticks =
    stepS === undefined
      ? []
      : roundTimes(minS, maxS - halfS, stepS).filter((at) => at >= minS + halfS);
  return ticks.length < MIN_TICKS ? evenTimes(minS, maxS) : ticks;
}

/** Whether labels need their seconds. */
export const isFine = (ticks: readonly number[]): boolean =>
  ticks.some((at) => at % MINUTE_S !== 0);

/** Multiples of a step since midnight in local time, also on days when the clock changes. */
function roundTimes(minS: number, endS: number, stepS: number): number[] {
  const first = new Date(minS * 1_000);
  const sinceMidnightS =
    first.getHours() * HOUR_S + first.getMinutes() * MINUTE_S + first.getSeconds();
  const [year, month, day] = [first.getFullYear(), first.getMonth(), first.getDate()];
  const times: number[] = [];
  for (let step = Math.floor(sinceMidnightS / stepS); ; step += 1) {
    const at = new Date(year, month, day, 0, 0, step * stepS).getTime() / 1_000;
    if (at > endS) {
      return times;
    }
    if (at >= minS && at > (times.at(-1) ?? Number.NEGATIVE_INFINITY)) {
      times.push(at);
    }
  }
}

/** A time in the middle of each third. */
function evenTimes(minS: number, maxS: number): number[] {
  const unitS = maxS - minS < HOUR_S ? 1 : MINUTE_S;
  const times = [1 / 6, 1 / 2, 5 / 6].map(
    (part) => Math.round((minS + (maxS - minS) * part) / unitS) * unitS,
  );
  return [...new Set(times)];
}
