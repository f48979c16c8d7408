/** A number with its noun: `1 worker`, `3 workers`. */
export function counted(count: number | string | undefined, noun: string): string {
  return `${count ?? 0} ${noun}${count === 1 ? "" : "s"}`;
}

/** A text that goes on behind a name, as one that stands alone: with a capital letter. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
