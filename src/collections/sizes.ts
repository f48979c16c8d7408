/** Formats a size for people. */
export function inUnits(bytes: number): string {
  if (bytes < 1024) {
    return `${bytes} B`;
  }
  const [unit, factor] =
    [["KiB", 1024] as const, ["MiB", 1024 ** 2] as const].find(([, one]) => bytes < one * 1024) ??
    (["GiB", 1024 ** 3] as const);
  return `${(bytes / factor).toFixed(1)} ${unit}`;
}
