/** A number with its noun: `1 worker`, `3 workers`, `90,000 items`. */
export function counted(count: number | string | undefined, noun: string): string {
  return `${(count ?? 0).toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
