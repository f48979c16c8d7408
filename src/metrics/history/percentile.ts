/**
 * Percentiles of a histogram, as `histogram_quantile` of Prometheus estimates
 * them: by linear interpolation within the bucket, whose lower bound is 0 for the
 * first. In the bucket without an upper bound it is that bucket's lower bound.
 */
export function percentile(
  fraction: number,
  counts: readonly number[],
  bounds: readonly number[],
): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!(total > 0)) {
    return Number.NaN;
  }
  const rank = fraction * total;
  let below = 0;
  for (const [index, bound] of bounds.entries()) {
    const count = counts[index] ?? 0;
    if (below + count >= rank && count > 0) {
      const lower = bounds[index - 1] ?? Math.min(0, bound);
      return lower + ((bound - lower) * (rank - below)) / count;
    }
    below += count;
  }
  return bounds.at(-1) ?? Number.NaN;
}
