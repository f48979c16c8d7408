/** The order of contenders in a round: each begins in turn, so that none always runs first. */
export function rotate<Item>(items: readonly Item[], round: number): Item[] {
  const at = round % (items.length || 1);
  return [...items.slice(at), ...items.slice(0, at)];
}
