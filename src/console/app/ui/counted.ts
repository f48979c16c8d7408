/** A number with its noun: `1 worker`, `3 workers`. */
export function counted(count: number | string | undefined, noun: string): string {
  return `${count ?? 0} ${noun}${count === 1 ? "" : "s"}`;
}
