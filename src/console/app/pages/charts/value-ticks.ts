/** The axis of values of a chart: from zero to a round number above them all, with round ticks. */

export interface AxisOptions {
  readonly heightPx: number;
  /** Steps are powers of two, as sizes in bytes have them. */
  readonly binary?: boolean | undefined;
  /** Of things that are counted there is no half. */
  readonly isWhole?: boolean | undefined;
  /** The axis begins near the lowest value, so that values with small differences do not look constant. */
  readonly isFitted?: boolean | undefined;
}

/** The room of a tick. */
const TICK_PX = 52;
/** Steps of an axis, however low the chart. */
const MIN_STEPS = 2;
/** Further steps of a fitted axis, whose ends are not ticks: at least two ticks lie between them. */
const MORE_STEPS = 3;

/** The axis is at least this part of its values long, because its ticks have three digits. */
const MIN_FITTED_SHARE = 0.05;

/** The ends of the axis for values between two: they are ticks, unless the axis is fitted. A part of one is on no axis that goes beyond it. */
export function axisRange(min: number, max: number, options: AxisOptions): [number, number] {
  const length = Math.max(max - min, Math.abs(max) * MIN_FITTED_SHARE);
  if (options.isFitted === true && min > length) {
    const [middle, half] = [(min + max) / 2, length * 0.6];
    const end = middle + half;
    return [middle - half, max <= 1 ? Math.min(end, 1) : end];
  }
  const [low, high] = [Math.min(min, 0), Math.max(max, 0)];
  const step = stepOf(high - low || 1, options);
  const end = Math.ceil(cleared(high / step)) * step;
  return [Math.floor(cleared(low / step)) * step, end === 0 && low === 0 ? 1 : end];
}

/** The multiples of a round step between the ends of an axis. */
export function valueTicks(min: number, max: number, options: AxisOptions): number[] {
  const step = stepOf(max - min, options, min > 0 ? MORE_STEPS : 0);
  const first = Math.ceil(cleared(min / step));
  const count = Math.floor(cleared(max / step)) - first + 1;
  return Array.from({ length: count }, (_, index) => cleared((first + index) * step));
}

/** The smallest round step with which a length has as few steps as the height has room for. */
function stepOf(length: number, { heightPx, binary, isWhole }: AxisOptions, more = 0): number {
  const least = length / (Math.max(MIN_STEPS, Math.floor(heightPx / TICK_PX)) + more);
  if (binary === true) {
    return 2 ** Math.max(0, Math.ceil(cleared(Math.log2(least))));
  }
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5].find((digit) => cleared(digit * power) >= cleared(least)) ?? 10;
  return isWhole === true ? Math.max(1, step * power) : step * power;
}

/** Without what binary fractions leave in the last digits. */
const cleared = (value: number): number => Number(value.toPrecision(12));
