/** Formats a size for people. */
export function inUnits(bytes: number): string {
  if (bytes < 1024) {
    return `${bytes} B`;
  }
  const [unit, factor] = bytes < 1024 ** 2 ? ["KiB", 1024] : ["MiB", 1024 ** 2];
  return `${(bytes / Number(factor)).toFixed(1)} ${unit}`;
}
